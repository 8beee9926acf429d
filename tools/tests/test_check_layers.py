import unittest

from tree import MODULES, TreeTest

import check_layers


class CheckLayers(TreeTest):
    def problems(self) -> str:
        return "\n".join(check_layers.check(self.root))

    def test_tree_without_fault_has_no_problem(self):
        self.assertEqual(self.problems(), "")

    def test_include_against_the_order_is_found(self):
        self.write("src/cicada/base/x.cc", '#include "cicada/model/model.h"\n')
        self.assertIn("src/cicada/base/x.cc: base may not include model", self.problems())

    def test_indented_include_is_found(self):
        self.write("src/cicada/base/x.cc", '#if 1\n #  include  "cicada/json/parse.h"\n#endif\n')
        self.assertIn("base may not include json", self.problems())

    def test_undeclared_folder_is_found(self):
        self.write("src/cicada/extra/x.cc", "")
        self.assertIn("src/cicada/extra: not declared", self.problems())

    def test_edge_to_a_later_module_is_found(self):
        self.write("cmake/modules.cmake", MODULES.replace("json base)", "json base model)"))
        self.assertIn("json names model, not declared above it", self.problems())

    def test_relative_include_is_found(self):
        self.write("src/cicada/json/x.cc", '#include "parse.h"\n')
        self.assertIn('is to be written "cicada/<module>/..."', self.problems())

    def test_missing_header_is_found(self):
        self.write("src/cicada/json/x.cc", '#include "cicada/json/none.h"\n')
        self.assertIn("cicada/json/none.h does not exist", self.problems())

    def test_program_reaches_only_for_the_commands(self):
        self.write("src/apps/cicada.cc", '#include "cicada/model/model.h"\n')
        self.assertIn("apps may not include model", self.problems())

    def test_bridge_is_a_door_for_few(self):
        self.write("src/cicada/json/x.cc", '#include "cicada_bridge.h"\n')
        self.assertIn("json may not include cicada_bridge.h", self.problems())


if __name__ == "__main__":
    unittest.main()
