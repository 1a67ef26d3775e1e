"""The students of the experiment, trained on batches of rows in place of infinite ones."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from holdfast.sensing.environments import two_point
from holdfast_studies.questions.network_students import BIAS, GROWTH, HETEROGENEITY, RELU, STUDENTS, _starts
from holdfast_studies.questions.two_layer_network import TeacherNetwork, TwoLayer, components, predictions, two_layer

ROWS, SEEDS, STEPS = 2000, 8, 400


def _detrended(residuals, inputs):
    """Residuals of a batch without their linear regression on the inputs, as a user would compute them."""
    design = jnp.column_stack([jnp.ones(len(inputs)), inputs])
    return residuals - design @ jnp.linalg.solve(design.T @ design, design.T @ residuals)


@pytest.mark.slow
@pytest.mark.parametrize(("pooled", "share"), [(False, (-0.05, 0.05)), (True, (0.9, 1.1))])
def test_a_relu_student_of_batches_of_rows(pooled, share):
    student = STUDENTS[RELU]
    teacher = TeacherNetwork(jnp.eye(10)[:1], jnp.eye(10)[1:2], two_point(BIAS, HETEROGENEITY), "relu")
    strengths = jnp.asarray(teacher.environments.strengths)
    step_size = student.step_size(GROWTH)

    def gradient(key, network, step):
        inputs = jax.random.normal(key, (ROWS, 10))
        # Half of the rows of a pooled batch come from each environment.
        first, second = (predictions("relu", teacher.network(each), inputs) for each in strengths)
        mixed = jnp.where(jnp.arange(ROWS) % 2 == 0, first, second)
        response = mixed if pooled else jnp.where(step % 2 == 0, first, second)

        def risk(network):
            return jnp.mean(jnp.square(_detrended(predictions("relu", network, inputs) - response, inputs))) / 2

        return jax.grad(risk)(network)

    @jax.jit
    @jax.vmap
    def train(key, hidden, output):
        algorithm = two_layer(gradient, TwoLayer(hidden, output), step_size)
        keys = jax.random.split(key, STEPS)
        body = lambda network, row: (algorithm.step(row[0], network, row[1]), None)  # noqa: E731
        network, _ = jax.lax.scan(body, algorithm.init(), (keys, jnp.arange(STEPS)))
        return components("relu", network, teacher, removed="linear")

    starts = _starts(student, SEEDS)
    found = np.asarray(train(jax.random.split(jax.random.key(0), SEEDS), starts["hidden"], starts["output"]))
    invariant, spurious = np.median(found, 0)
    assert 0.9 < invariant < 1.1
    assert share[0] < spurious < share[1]
