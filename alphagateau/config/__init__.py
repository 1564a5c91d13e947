"""The keys of every file that a user writes: frozen records that are checked when made."""

from alphagateau.config.files import (
    change,
    describe_difference,
    dumps,
    find_file,
    flatten,
    from_dict,
    load,
    load_ladder,
    load_study,
    make_record,
    to_dict,
)
from alphagateau.config.ladder import LadderConfig
from alphagateau.config.records import MAX_INT, ConfigError, check_folder_name, fields_of, printable, show
from alphagateau.config.registers import NETWORKS, REGISTERS, SEARCHES, NetworkConfig, SearchConfig
from alphagateau.config.schema import (
    DataConfig,
    Experiment,
    HealthConfig,
    RetentionConfig,
    SelfPlayConfig,
    TargetsConfig,
    TrainingConfig,
    WindowConfig,
    board_experiments,
)
from alphagateau.config.study import BudgetConfig, PilotConfig, StudyConfig, changes_of, parse_budget
