package repo_test

import (
	"go/scanner"
	"go/token"
	"path"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// banned are phrases that no text of this repository needs, because its subjects are
// programs and objects.
var banned = regexp.MustCompile(`(?i)\b(nobody|somebody|whoever|whom|those who|has got|gainsaid|anew|what is known of)\b`)

// maxComment is the maximum number of columns of a comment, except of preformatted text and of the output of examples.
const maxComment = 120

// partOfName reports whether a phrase is part of a name, such as that of a Unix user in
// /etc/passwd.
func partOfName(text string, at []int) bool {
	return at[0] > 0 && strings.ContainsRune("-:/_", rune(text[at[0]-1])) || at[1] < len(text) && strings.ContainsRune("-:/_", rune(text[at[1]]))
}

// Comments, strings and documents do without the banned phrases; of tests only the
// comments are checked, because pods in them may have any text. Comments outside of tests have short lines.
func TestTheProseIsPlainAndItsLinesAreShort(t *testing.T) {
	needRepository(t)
	documents := filesWhere(t, func(name string) bool {
		return !inTestdata(name) && (path.Ext(name) == ".go" || path.Ext(name) == ".md")
	})
	require.Greater(t, len(documents), 100)
	for _, name := range documents {
		source := read(t, name)
		add := func(line int, text string) {
			for i, part := range strings.Split(text, "\n") {
				if at := banned.FindStringIndex(part); at != nil && !partOfName(part, at) {
					t.Errorf("%s:%d: %s", name, line+i, part[at[0]:at[1]])
				}
			}
		}
		if path.Ext(name) == ".md" {
			add(1, string(source))
			continue
		}
		fset := token.NewFileSet()
		file := fset.AddFile(name, -1, len(source))
		var s scanner.Scanner
		s.Init(file, source, nil, scanner.ScanComments)
		for pos, tok, text := s.Scan(); tok != token.EOF; pos, tok, text = s.Scan() {
			if tok == token.COMMENT && strings.HasPrefix(text, "// ") && utf8.RuneCountInString(text) > maxComment && !strings.HasSuffix(name, "_test.go") {
				t.Errorf("%s: a comment has more than %d columns", fset.Position(pos), maxComment)
			}
			if tok == token.COMMENT || tok == token.STRING && !strings.HasSuffix(name, "_test.go") {
				add(fset.Position(pos).Line, text)
			}
		}
	}
}
