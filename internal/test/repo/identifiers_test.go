package repo_test

import (
	"go/scanner"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// bannedWords are words of which no identifier, file name or shell script is made: theater, and people for programs.
var bannedWords = []string{
	"actor", "actors", "anew", "anybody", "believe", "believed", "believes", "everybody", "heard", "hog", "hogs", "hurt", "judge", "judged",
	"judges", "law", "laws", "liar", "nobody", "obey", "obeys", "promise", "promises", "said", "says", "scene", "scenes", "somebody", "speak",
	"speaks", "story", "stories", "tell", "tells", "told", "trial", "trials", "verdict", "verdicts", "whoever", "whom",
}

var word = regexp.MustCompile(`[A-Z]+[0-9]*\b|[A-Z]?[a-z]+|[A-Z]+`)

// bannedWord returns the first banned word of a name, such as "TestTheLaws" or "laws_test.go"; empty if there is none.
func bannedWord(name string) string {
	for _, w := range word.FindAllString(name, -1) {
		if w = strings.ToLower(w); slices.Contains(bannedWords, w) {
			return w
		}
	}
	return ""
}

func TestBannedWordsAreFound(t *testing.T) {
	for name, want := range map[string]string{
		"TestTheLaws": "laws", "runtime/laws_test.go": "laws", "promise_exit.go": "promise", "KUBEPARTS_STORY": "story", "newScene": "scene", "judge": "judge",
		"clause": "", "Lawn": "", "historyOf": "", "IDs": "",
	} {
		assert.Equal(t, want, bannedWord(name), name)
	}
}

// isShell reports whether a file is a shell script. Those of .ci have no suffix.
func isShell(name string) bool { return path.Ext(name) == ".sh" || strings.HasPrefix(name, ".ci/") }

// ciFiles returns the files below .ci, which filesWhere leaves out.
func ciFiles(t *testing.T) (names []string) {
	t.Helper()
	require.NoError(t, fs.WalkDir(files, ".ci", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, name)
		}
		return err
	}))
	return names
}

// Names of files, identifiers of Go, and shell scripts do without the banned words.
func TestTheIdentifiersAvoidTheBannedWords(t *testing.T) {
	needRepository(t)
	report := func(name string, line int, text string) {
		if found := bannedWord(text); found != "" {
			t.Errorf("%s:%d: %s: %s", name, line, text, found)
		}
	}
	checked := 0
	for _, name := range append(filesWhere(t, func(name string) bool { return !inTestdata(name) }), ciFiles(t)...) {
		report(name, 0, name)
		switch source := read(t, name); {
		case path.Ext(name) == ".go":
			checked++
			fset := token.NewFileSet()
			file := fset.AddFile(name, -1, len(source))
			var s scanner.Scanner
			s.Init(file, source, nil, 0)
			for pos, tok, text := s.Scan(); tok != token.EOF; pos, tok, text = s.Scan() {
				if tok == token.IDENT {
					report(name, fset.Position(pos).Line, text)
				}
			}
		case isShell(name):
			checked++
			for i, line := range strings.Split(string(source), "\n") {
				report(name, i+1, line)
			}
		}
	}
	require.Greater(t, checked, 1000)
}
