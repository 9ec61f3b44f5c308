# SPDX-License-Identifier: Apache-2.0
"""An application in the style of microTVM's demos: main.c on the C interface, data in C++ files and headers."""

from pathlib import Path

MAIN = """\
/* As TVM's demos: the C interface, a runtime's header that is not used, data from generated files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tvm/runtime/c_runtime_api.h>
#include <tvm/runtime/crt/platform.h>
#include <tvmgen_default.h>

#include "data/inputs.h"
#include "../include/labels.h"

static int8_t output_data[TVMGEN_DEFAULT_Y_SIZE];

/* Called by microTVM's runtime. */
void TVMPlatformAbort(tvm_crt_error_t error)
{
	printf("TVMPlatformAbort: %d\\n", (int)error);
}

int main(void)
{
	struct tvmgen_default_inputs inputs = {(void *)&input_data};
	struct tvmgen_default_outputs outputs = {(void *)&output_data};
	float result[2];

	for (int i = 0; i < 2; i++) {
		int ret_val = tvmgen_default_run(&inputs, &outputs);

		if (ret_val != 0) {
			TVMPlatformAbort(kTvmErrorPlatformCheckFailure);
			return 0;
		}
		memcpy(result, output_data, sizeof(result));
	}
	for (int i = 0; i < 2; i++) {
		printf("%s: %d\\n", labels[i], (int)(result[i] * 1000 + (result[i] < 0 ? -0.5f : 0.5f)));
	}
	printf("workspace: %d, %d\\n", TVMGEN_DEFAULT_WORKSPACE_SIZE > 0, (int)input_data_len);
	return 0;
}
"""

DECLARED = "extern const size_t input_data_len;\nextern const float input_data[4];\n"
FILES = {
    "src/main.c": MAIN,
    "src/data/inputs.h": f'#include <stddef.h>\n#ifdef __cplusplus\nextern "C" {{\n#endif\n{DECLARED}'
    "#ifdef __cplusplus\n}\n#endif\n",
    "src/data/inputs.cc": '#include "inputs.h"\nextern const size_t input_data_len = 16;\n'
    "extern const float input_data[4] __attribute__((aligned(16))) = {1, -2, 3, 0.5f};\n",
    "include/labels.h": "extern const char *const labels[2];\n",
    "src/labels.c": '#include "../include/labels.h"\n\nconst char *const labels[2] = {"yes", "no"};\n',
}
INPUT = (1, -2, 3, 0.5)


def add_application(folder: Path) -> Path:
    """Add the application to the directory of an import; return the manifest."""
    for name, text in FILES.items():
        (folder / "app" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "app" / name).write_text(text)
    manifest = folder / "manifest.yaml"
    names = ", ".join(f"app/{name}" for name in FILES)
    manifest.write_text(f"{manifest.read_text()}\napplication:\n  sources: [{names}]\n")
    return manifest


def lines(expected: tuple[float, float]) -> str:
    """Return the output of the application."""
    thousandths = [int(value * 1000 + (-0.5 if value < 0 else 0.5)) for value in expected]
    return f"yes: {thousandths[0]}\nno: {thousandths[1]}\nworkspace: 1, 16\n"
