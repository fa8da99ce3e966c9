# SPDX-License-Identifier: Apache-2.0
"""Each rule sees what it is there for: a tree with one violation of every kind."""
import pathlib
import tempfile

import rules

SPDX = "// SPDX-License-Identifier: Apache-2.0\n"
TREE = {
    "src/sync/sync.cpp": SPDX + "#include <mpi.h>\n",
    "src/backend/cpu/pool.cpp": SPDX + '#include <dnnl.hpp>\n#include "comm/communicator.hpp"\n',
    "src/network/plan.hpp": SPDX + "#pragma once\n#include <cudnn.h>\n",
    "src/network/plan.cpp": SPDX + '#include <vector>\n#include "network/plan.hpp"\n',
    "src/network/twice.hpp": SPDX,
    "src/io/hdf5.cpp": SPDX + "#include <hdf5.h>\n",
    "preprocess/raw.cpp": SPDX + "#include <hdf5.h>\n",
    "src/io/string_utils.cpp": SPDX,
    "src/train/long.cpp": SPDX + "\n" * 601,
    "src/train/bare.cpp": "int x;\n",
    "tests/unit/idle_test.cpp": SPDX + "TEST(A, DISABLED_Idle) { EXPECT_GE(f.take_seconds(), 0.0); }\n",
    "src/sync/phase.hpp": SPDX + "#pragma once\nnamespace convoy {\nstruct Phase : std::pair<int, int> {\n  enum class Kind { a, b };\n};\n"
                                 "namespace {\nstruct Hidden {};\n}\n}\n",
    "src/sync/average.cpp": SPDX + "namespace convoy {\nnamespace {\nstruct Phase {};  // its own\n}\nvoid Phase::run(int) {\n"
                                   "  switch (kind) {\n    case Kind::a: break;\n    default: break;\n  }\n}\n}\n",
    "preprocess/phase.hpp": SPDX + "#pragma once\nnamespace convoy {\nstruct Phase;\n/* struct Phase {}; */\nenum class Phase : char { x };\n"
                                   "struct Other { struct Phase {}; };\n}\nnamespace convoy::preparation {\nstruct Phase {};\n}\n",
    "preprocess/hidden.hpp": SPDX + "#pragma once\nnamespace convoy {\nnamespace {\nstruct Hidden {};\n}\n}\n",
    "src/metrics/phase_steps.cpp": SPDX + "int Hidden::first() { return 1; }\nvoid f() {\n  switch (c) {\n    case 1: break;\n    default: break;\n  }\n}\n",
    "src/metrics/modes.cpp": SPDX + "SyncMode mode;\n",
    **{f"src/optim/rule{i}.cpp": SPDX + "int adamw;\n" for i in range(5)},
    "slurm/job.sh": "# SPDX-License-Identifier: Apache-2.0\n#SBATCH -n 4\nrun_directory=x\n" + "srun convoy train\n" * 2
                    + "#SBATCH --nodes=1\n" + "\n" * 40,
    "pbs/job.pbs": "#!/bin/bash\n# SPDX-License-Identifier: Apache-2.0\n#PBS -l select=2:ncpus=4:mpiprocs=2,walltime=1:00:00\n"
                   "#PBS -l nodes=2:ppn=2\n#PBS -r y\n{ cd . && . scripts/batch.sh pbs/job.pbs; } ||\n"
                   "launch true $SLURM_JOB_ID\n#PBS -N late\n",
    "configs/a.cfg": "# SPDX-License-Identifier: Apache-2.0\n# Target:   99\n# Run here:\nlr = 1\n",
}
EXPECTED = [
    "src/sync/sync.cpp: includes mpi.h",
    "src/backend/cpu/pool.cpp: includes comm/communicator.hpp; backend does not build on comm",
    "src/network/plan.hpp: includes cudnn.h",
    "src/network/plan.hpp: the first include of plan.cpp is not network/plan.hpp",
    "src/network/twice.hpp: no #pragma once",
    "preprocess/raw.cpp: includes hdf5.h",
    "src/io/string_utils.cpp: the name",
    "src/train/long.cpp: 602 lines",
    "src/train/bare.cpp: needs one SPDX line",
    "tests/unit/idle_test.cpp: DISABLED_",
    "tests/unit/idle_test.cpp: _GE(f.take_seconds(), 0.0)",
    "preprocess/phase.hpp: defines convoy::Phase, which src/sync/phase.hpp",
    "preprocess/hidden.hpp: defines convoy::Hidden, which src/sync/phase.hpp",
    "src/sync/average.cpp:7: a switch over an enumeration has a default",
    "src/metrics/phase_steps.cpp: defines members of Hidden",
    "src: adamw stands in 5 files",
    *(f"src: {word} stands in 0 files" for word in rules.TOUCHES if word != "adamw"),
    *(f"{name}: does not know {word}" for word, name in rules.MENTIONS),
    "src/metrics/modes.cpp: knows SyncMode",
    "slurm/job.sh: 46 lines",
    "slurm/job.sh: does not begin with #!",
    "slurm/job.sh: 2 launch lines",
    "slurm/job.sh: does not source",
    "slurm/job.sh: trains without",
    "slurm/job.sh: an #SBATCH line stands behind",
    "slurm/job.sh: '#SBATCH -n 4' is not",
    "slurm/job.sh: no #SBATCH --job-name",
    "slurm/job.sh: no #SBATCH --time",
    "slurm/job.sh: no #SBATCH --output",
    "slurm/job.sh: no #SBATCH --requeue",
    "slurm/job.sh: without --open-mode",
    "slurm/job.sh: needs --signal",
    "pbs/job.pbs: a #PBS line stands behind",
    "pbs/job.pbs: '#PBS -l select=2:ncpus=4:mpiprocs=2,walltime=1:00:00' is nothing",
    "pbs/job.pbs: '#PBS -l nodes=2:ppn=2' is nothing",
    "pbs/job.pbs: no #PBS -l walltime=",
    "pbs/job.pbs: no #PBS -j oe",
    "pbs/job.pbs: uses SLURM_JOB_ID",
    "configs/a.cfg: no '# Source:' line",
    "configs/a.cfg: no '# Run here:' line",
]

with tempfile.TemporaryDirectory() as folder:
    for name, text in TREE.items():
        path = pathlib.Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    found = list(rules.all_violations(folder))
for expected in EXPECTED:
    assert sum(f.startswith(expected) for f in found) == 1, f"{expected!r} not seen once in {found}"
assert len(found) == len(EXPECTED), found
