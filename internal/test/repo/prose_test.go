package repo_test

import (
	"fmt"
	"go/scanner"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// banned are phrases that no text of this repository needs, because its subjects are
// programs and objects.
var banned = regexp.MustCompile(`(?i)\b(nobody|somebody|whoever|whom|those who|has got|gainsaid|anew|what is known of)\b`)

// partOfName reports whether a phrase is part of a name, such as that of a Unix user in
// /etc/passwd.
func partOfName(text string, at []int) bool {
	return at[0] > 0 && strings.ContainsRune("-:/_", rune(text[at[0]-1])) || at[1] < len(text) && strings.ContainsRune("-:/_", rune(text[at[1]]))
}

// Comments, strings and documents do without the banned phrases; of tests only the
// comments are checked, because pods in them may have any text.
func TestTheProseAvoidsTheBannedPhrases(t *testing.T) {
	if _, err := fs.Stat(files, "kube"); err != nil {
		t.Skip("this is the core module without the modules below it")
	}
	found := map[string][]string{}
	checked := 0
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && name != "."):
			return fs.SkipDir
		case d.IsDir() || path.Ext(name) != ".go" && path.Ext(name) != ".md":
			return nil
		}
		source, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		checked++
		where := path.Dir(name)
		if strings.HasSuffix(name, "_test.go") {
			where += "/*_test.go"
		}
		add := func(line int, text string) {
			for i, part := range strings.Split(text, "\n") {
				if at := banned.FindStringIndex(part); at != nil && !partOfName(part, at) {
					found[where] = append(found[where], fmt.Sprintf("%s:%d: %s", name, line+i, part[at[0]:at[1]]))
				}
			}
		}
		if path.Ext(name) == ".md" {
			add(1, string(source))
			return nil
		}
		fset := token.NewFileSet()
		file := fset.AddFile(name, -1, len(source))
		var s scanner.Scanner
		s.Init(file, source, nil, scanner.ScanComments)
		for {
			pos, tok, text := s.Scan()
			switch {
			case tok == token.EOF:
				return nil
			case tok == token.COMMENT, tok == token.STRING && !strings.HasSuffix(name, "_test.go"):
				add(fset.Position(pos).Line, text)
			}
		}
	})
	require.NoError(t, err)
	require.Greater(t, checked, 100)
	checkRemaining(t, "prose", found)
}
