# The public names of holdfast.torch, imported when they are first used.
from .balancing import Balance as Balance
from .balancing import BalancedNetwork as BalancedNetwork
from .balancing import balance as balance
from .balancing import balanced_weights as balanced_weights
from .balancing import train_balanced as train_balanced
from .discovery import Discovery as Discovery
from .discovery import discover as discover
from .features import LayerReader as LayerReader
from .head import InvariantHead as InvariantHead
from .head import invariant_head as invariant_head
from .head import with_layer as with_layer
from .sheet import draw_sheet as draw_sheet
from .sheet import write_sheet as write_sheet
from .training import TrainingOptions as TrainingOptions
