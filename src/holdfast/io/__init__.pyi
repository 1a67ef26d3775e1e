from .measurements import read_measurements as read_measurements
from .models import TableModel as TableModel
from .tables import Column as Column
from .tables import read_chunks as read_chunks
