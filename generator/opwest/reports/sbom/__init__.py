# SPDX-License-Identifier: Apache-2.0
"""`opwest report --sbom`: the bill of materials of an application, as a document of SPDX 2.3.

Enters: a generated project, or a build of one. Leaves: packages, files and their relationships as JSON or tag and
value. Never: a licence that no input states."""
