package podenv_test

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/podenv"
)

func TestEnvFiles(t *testing.T) { // pe-9
	for _, tc := range []struct {
		name, text string
		want       map[string]string
		failure    string
	}{
		{"pe-9 empty", "", map[string]string{}, ""},
		{"pe-9 lines", "A='1'\nB='two words'", map[string]string{"A": "1", "B": "two words"}, ""},
		{"pe-9 the last has it", "A='1'\nA='2'\n", map[string]string{"A": "2"}, ""},
		{"pe-9 comments, empty lines, spaces", "# note\n\n  A = '1'\t\n\t# B='2'\nC='3' # three\n", map[string]string{"A": "1", "C": "3"}, ""},
		{"pe-9 nothing means anything", `A='$(B) $C \n "x" #=` + "'", map[string]string{"A": `$(B) $C \n "x" #=`}, ""},
		{"pe-9 more lines than one", "A='1\n# no comment\n2'\nB=''\n", map[string]string{"A": "1\n# no comment\n2", "B": ""}, ""},
		{"pe-9 written on Windows", "A='1'\r\nB='2'\r\n", map[string]string{"A": "1", "B": "2"}, ""},
		{"pe-9 no quotes", "A='1'\nB=2", nil, "line 2: the value of B is not in single quotes"},
		{"pe-9 double quotes", `A="1"`, nil, "line 1: the value of A is not in single quotes"},
		{"pe-9 nothing", "A=", nil, "line 1: the value of A is not in single quotes"},
		{"pe-9 on the next line", "A=\n'1'", nil, "line 1: the value of A is not in single quotes"},
		{"pe-9 never closed", "\nA='1\nB=2", nil, "line 2: the value of A has no closing quote"},
		{"pe-9 one after the other", "A='1''2'", nil, "line 1: unexpected text after the value of A"},
		{"pe-9 with an expansion", "A='1'$B", nil, "line 1: unexpected text after the value of A"},
		{"pe-9 no comment", "A='1'#b", nil, "line 1: unexpected text after the value of A"},
		{"pe-9 counts lines of values", "A='\n\n'\n\nB", nil, "line 5: expected KEY='value'"},
		{"pe-9 no name", "='1'", nil, `line 1: invalid variable name ""`},
		{"pe-9 a command", "export A='1'", nil, `line 1: invalid variable name "export A"`},
		{"pe-9 a zero byte", "A='\x00'", nil, "line 1: the value of A contains a zero byte"},
		{"pe-9 too large", strings.Repeat("#", podenv.MaxFile+1), nil, "more than 65536 bytes"},
		{"pe-9 as large as it may be", strings.Repeat("#", podenv.MaxFile), map[string]string{}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := podenv.ParseFile([]byte(tc.text))
			if tc.failure != "" {
				assert.EqualError(t, err, tc.failure)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tc.want, got)
		})
	}
}

// What was read can be written and read again, and is what it was.
func FuzzParseFile(f *testing.F) {
	for _, seed := range []string{"A='1'\n", "# x\n A = 'b\nc' # d\r\nA=''", "A='1''2'", "=", "'", "A='\x00'"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		vars, err := podenv.ParseFile(data)
		if err != nil {
			if vars != nil {
				t.Fatal("both variables and an error")
			}
			return
		}
		var b strings.Builder
		for _, key := range slices.Sorted(maps.Keys(vars)) {
			if key == "" || strings.ContainsAny(key, "= \t\r\n\x00") || strings.ContainsAny(vars[key], "'\x00") {
				t.Fatalf("%q = %q", key, vars[key])
			}
			b.WriteString(key + "='" + vars[key] + "'\n")
		}
		if b.Len() > podenv.MaxFile {
			return
		}
		again, err := podenv.ParseFile([]byte(b.String()))
		require.NoError(t, err)
		assert.Equal(t, vars, again)
	})
}

func TestReadFileStaysInTheVolume(t *testing.T) { // pe-9
	dir, outside := t.TempDir(), t.TempDir()
	write := func(path string, size int) {
		require.NoError(t, os.WriteFile(path, make([]byte, size), 0o644))
	}
	write(filepath.Join(dir, "full"), podenv.MaxFile)
	write(filepath.Join(dir, "over"), podenv.MaxFile+1)
	write(filepath.Join(outside, "secret"), 1)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "dir"), 0o755))
	require.NoError(t, os.Symlink("full", filepath.Join(dir, "in")))
	require.NoError(t, os.Symlink(filepath.Join(outside, "secret"), filepath.Join(dir, "out")))
	for _, path := range []string{"full", "in", "dir/../full"} {
		data, err := podenv.ReadFile(dir, path)
		require.NoError(t, err, path)
		assert.Len(t, data, podenv.MaxFile)
	}
	for _, path := range []string{"over", "out", "dir", "../secret", "/etc/passwd"} {
		data, err := podenv.ReadFile(dir, path)
		assert.Error(t, err, path)
		assert.NotErrorIs(t, err, fs.ErrNotExist, path)
		assert.Nil(t, data)
	}
	_, err := podenv.ReadFile(dir, "none")
	assert.ErrorIs(t, err, fs.ErrNotExist)
	_, err = podenv.ReadFile(filepath.Join(dir, "none"), "none")
	assert.ErrorIs(t, err, fs.ErrNotExist)
}
