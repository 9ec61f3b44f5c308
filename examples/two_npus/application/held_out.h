/* SPDX-License-Identifier: Apache-2.0 AND CC-BY-4.0 */
/* Written by examples/two_npus/train.py, do not edit. */

/**
 * @file
 * 40 handwritten digits that were not used for training, from the UCI data set that
 * scikit-learn calls `load_digits`. E. Alpaydin and C. Kaynak (1998), Optical Recognition of
 * Handwritten Digits, https://doi.org/10.24432/C50P49, CC BY 4.0; pixels written as letters.
 */

#ifndef TWO_NPUS_HELD_OUT_H_
#define TWO_NPUS_HELD_OUT_H_

#include <stdint.h>

enum {
	HELD_OUT_IMAGES = 40,
	HELD_OUT_PIXELS = 64,
};

/** One image, 8 rows of 8 pixels. */
struct held_out_image {
	/** `'a'` is paper (0), `'q'` is full ink (16). */
	char pixels[HELD_OUT_PIXELS + 1];
	/** The digit that was written. */
	int8_t label;
	/** The prediction of reference.py. */
	int8_t reference;
};

static const struct held_out_image held_out[HELD_OUT_IMAGES] = {
	{"aainofaaafneljaaaenbmoaaaaiolmeaaaaaahiaaaaaaeiaaaccalhaaaiqqnca", 9, 9},
	{"aahqqdaaahqjohaaakjaofaaaddeqcaaaaamlaaaaagqdaaaaampiidaaakqqqja", 2, 2},
	{"aanokcaaaagqqqaaaaaqqqeaaaeqqocaaaiqqhaaadpqqeaaabqqobaaaaoqndaa", 1, 1},
	{"aagpfaaaabpppdaaacqgloaaaapopqbaaadikqfaaaaadqiaaaaekqiaaahmnmba", 9, 9},
	{"aagokcaaaappnpdaacqkanjaabqfamfaaaqdangaabpfgnbaaaqlokaaaahqlbaa", 0, 0},
	{"aafqpeaaadpnnmaaahobaqfaamjablkaakkaahnaagpaaimaabohgplaaafpqoda", 0, 0},
	{"aanqmhaaaeqpmmdaaeqfaaaaadqjaaaaaapqcaaaaaeqoaaaabjoqaaaabnqkaaa", 5, 5},
	{"aaamlaaaaammjkaaacqcblbaabpaafiaacoaafkaaancacnaaahjahlaaaalnqca", 0, 0},
	{"abhnodaaakncfkaaameahqaaagkjnpbaaaceaoeaaaaaancaaagafoaaaafoofaa", 9, 9},
	{"aabmqqmaaahqlmjaaaghaoeaaaaagqdaaaakqqjaaaaipfaaaaaikaaaaaaqfaaa", 7, 7},
	{"aablpgaaacpkqpaaabofglaaaafoodaaaaboqgaaaakigpbaaajjeqdaaabppgaa", 8, 8},
	{"aaclnfaaaaqknqhaaaokaklaaaeoqnbaaaalnmbaaaikcodaaakkdpbaaacpqgaa", 8, 8},
	{"acnqpcaaapohqfaaakbcqeaaaablqpiaaapqnicaaakoaaaaaalkaaaaaapdaaaa", 7, 7},
	{"aacnnbaaaamqjaaaaaqlaaaaaeqiaaaaagqjdaaaadqomneaaaokakpaaacmqnha", 6, 6},
	{"abmqqqmaajqngifaaiqpdaaaaaeolaaaaaammaaaaaamnaaaaadplaaaaamncaaa", 5, 5},
	{"aaacocaaaaaoiaaaaakjaeeaaeobbpiaaeqflqcaagqqqlaaaaeamgaaaaabnbaa", 4, 4},
	{"aabhkdaaaaiqqmaaaaiqqmaaaakqqfaaaahqqbaaaaoqpbaaaamqqbaaaabjmjaa", 1, 1},
	{"aaajpbaaaakneaaaacpbaaaaafleeaaaaeqqqqeaaaqcakiaaaimenhaaabjqlba", 6, 6},
	{"aaaloaaaaakqeaaaabplaaaaadqmicaaahqqmodaaeqiakjaabmpjokaaacknlba", 6, 6},
	{"aaaipfaaaadqnbaaaamqcaaaafqhjeaaaoqnqodaaioqqocaaaajqdaaaaaloaaa", 4, 4},
	{"aaacpeaaaaaipbaaaabomaaaaagqmaaaaanqpecaajqqqqlaadiiqdaaaaadpaaa", 4, 4},
	{"aaaipaaaaadpdaaaaamkabaaaeqellaaalpcokbaanqqqnbaaaemmaaaaaaljaaa", 4, 4},
	{"aaboneaaadpmlpaaailbhnaaabnoqbaaaaaonocaaacmajiaaadnemgaaaajonba", 8, 8},
	{"aaakpaaaaalpdaaaahpeaaaaamlbdicaaemppqjaaaaiqicaaaakmaaaaaamjaaa", 4, 4},
	{"aakkmhaaaapnfmfaaeneaciaaieaadiaaieaahfaaggaalcaabnddmaaaahpqhaa", 0, 0},
	{"aaanjaaaaaepdaaaaaljgeaaafqdnibaaoqjqqjaamqqqldaaaemoaaaaaamkaaa", 4, 4},
	{"aacnqiaaaalqgcaaacqiaaaaafqjbaaaafqqncaaabqgioaaaalkbqfaaadpqqda", 6, 6},
	{"aadpqqmaaammhqgaaemajnaaaabbnhaaaainqqgaaampmgbaaaapfaaaaadqcaaa", 7, 7},
	{"aaapcaaaaaaqeaaaaagjaaaaaamqqjbaaaolaijaaalodcoaaaileohaaabmogaa", 6, 6},
	{"afqpdaaaalollaaaaileqaaaaaaenaaaaaaimaaaaaanjfbaablqqqkaafqoigba", 2, 2},
	{"aagoqfaaacqqqhaaacpqpcaaaagqphaaaaokgqdaabqdaqhaaakllpdaaadoqgaa", 8, 8},
	{"aadnoeaaaanmoqaaabqdoqeaabojqqgaaacieljaaaccamkaaaooeljaaaeilqja", 9, 9},
	{"aahpqkaaaaojkqbaaacfpoaaaaalqfaaaaacqiaaaaaaknaaaaljpqbaaaiqqmaa", 3, 3},
	{"aapqldaaaaekppdaaaaaoqfaaaafqmaaaaadqlbaaaacnqjaaagpqmdaaapohbaa", 3, 3},
	{"abmnnaaaaelgdaaaahligbaaafpmnmaaaaaaaneaaaaaaiiaackihpdaabnqmfaa", 5, 5},
	{"aaenneaaaaqkkiaaaaohglaaaagppqcaaaaaalfaaaaaahjaabeegmkaabglpmba", 9, 9},
	{"abmqfaaaalqqnaaaahgfocaaaaaamdaaaaaenaaaaabnfaaaaakqkieaaanpqmha", 2, 2},
	{"aaanoaaaaaanqdaaaacqpdaaaaeqoaaaaadqlaaaaaiqkaaaaagqhaaaaabljaaa", 1, 1},
	{"aapqqmcaacqpmmdaaeqiaaaaaiqmeaaaaamqqaaaaaadqiaaacgjqiaaabpqpdaa", 5, 5},
	{"aaenqlaaajqjkpaaafeamlaaaaafqmbaaaabjpiaaaaaaimaaabgiqiaaafqpjba", 3, 3},
};

#endif /* TWO_NPUS_HELD_OUT_H_ */
