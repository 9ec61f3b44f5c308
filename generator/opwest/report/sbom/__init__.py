# SPDX-License-Identifier: Apache-2.0
"""`opwest report --sbom`: the bill of materials of an application, as a document of SPDX 2.3."""
