"""The deep engine: DQN and its penalised arms, a population of runs at a time."""
