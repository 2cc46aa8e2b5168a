import numpy as np
import pytest
import torch

from gramian.deep.envs.observations import FrameStack, ObservationSpec


@pytest.mark.parametrize(
    ("spec", "shape"),
    [
        (ObservationSpec((84, 84), np.uint8, 4), (4, 84, 84)),
        (ObservationSpec((84, 84), np.uint8, 1), (1, 84, 84)),
        (ObservationSpec((10, 10, 10), np.uint8, 1), (10, 10, 10)),
        (ObservationSpec((4,), np.float32, 2), (8,)),
    ],
)
def test_observations_have_channels_first(spec, shape):
    assert spec.shape == shape


def test_frames_are_bytes_or_single_floats():
    with pytest.raises(ValueError, match="uint8 or float32"):
        ObservationSpec((4,), np.float64, 1)


def test_a_stack_is_zero_before_the_first_frame_of_an_episode_and_each_environment_has_its_own():
    stack = FrameStack(ObservationSpec((1, 1), np.uint8, 3), (1, 2))
    started = [[True, True], [False, False], [False, True], [False, False], [False, False]]
    seen = []
    for t, flags in enumerate(started, start=1):
        frames = torch.tensor([[t, 10 + t]], dtype=torch.uint8).view(1, 2, 1, 1)
        seen.append(stack.push(frames, torch.tensor([flags])).view(2, 3).tolist())
    assert [first for first, _ in seen] == [[0, 0, 1], [0, 1, 2], [1, 2, 3], [2, 3, 4], [3, 4, 5]]
    assert [second for _, second in seen] == [[0, 0, 11], [0, 11, 12], [0, 0, 13], [0, 13, 14], [13, 14, 15]]


def test_a_stack_pushed_in_parts_holds_the_last_frames_of_every_running_episode():
    chance = np.random.default_rng(0)
    stack, parts = FrameStack(ObservationSpec((2, 2), np.uint8, 3), (3, 2)), (slice(0, 1), slice(1, 3))
    expected = np.zeros((3, 2, 3, 2, 2), np.uint8)
    for _ in range(20):
        frames, started = chance.integers(0, 256, (3, 2, 2, 2), np.uint8), chance.random((3, 2)) < 0.3
        kept = np.where(started[..., None, None, None], 0, expected[:, :, 1:])
        expected = np.concatenate([kept, frames[:, :, None]], axis=2)
        for runs in parts:
            stack.push(torch.from_numpy(frames[runs]), torch.from_numpy(started[runs]), runs)
        assert np.array_equal(stack.observations.numpy(), expected)
