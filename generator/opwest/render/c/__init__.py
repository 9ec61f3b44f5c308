# SPDX-License-Identifier: Apache-2.0
"""C sources of a model: rows for the templates of project_template/models."""
