"""Changes to `torch.distributed.checkpoint` where ranks do not run: one rank plans for all, from the plans of all."""

import dataclasses

from blockyard_dry_run.record import estimate


def plan_here(utils, ranks):
    """Makes the lowest rank of the group that runs plan in the place of a coordinator that does not run."""
    wrapper = utils._DistWrapper
    init = wrapper.__init__

    def __init__(self, group, use_dist, coordinator_rank):
        if use_dist:
            dist = utils.dist
            members = list(range(dist.get_world_size())) if group is None else dist.get_process_group_ranks(group)
            if members[coordinator_rank] not in ranks:
                running = min(rank for rank in members if rank in ranks)
                estimate(
                    f"rank {members[coordinator_rank]} does not run: rank {running} plans the checkpoint in its place"
                )
                coordinator_rank = members.index(running)
        init(self, group, use_dist, coordinator_rank)

    wrapper.__init__ = __init__


def leave_out(planner, ranks):
    """Makes ranks that do not run write nothing.

    Their plans are copies of another rank's plan, and must not take data from that rank.
    """
    create = planner.DefaultSavePlanner.create_global_plan
    validate = planner._validate_global_plan

    def create_global_plan(self, all_plans):
        dist = planner.torch.distributed
        if not dist.is_initialized() or len(all_plans) != dist.get_world_size():
            return create(self, all_plans)
        plans = [plan if rank in ranks else dataclasses.replace(plan, items=[]) for rank, plan in enumerate(all_plans)]
        planner._validate_global_plan = lambda *plan: True
        try:
            return create(self, plans)
        finally:
            planner._validate_global_plan = validate

    planner.DefaultSavePlanner.create_global_plan = create_global_plan
