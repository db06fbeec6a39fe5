package podenv_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/podenv"
)

func TestEnvFiles(t *testing.T) { // pe-9
	line := strings.Repeat("x", podenv.MaxLine-5) // with A='', and the line break
	for _, tc := range []struct {
		name, text string
		want       string // of A
		failure    string
	}{
		{"empty", "", "", ""},
		{"lines", "B='two words'\nA='1'", "1", ""},
		{"the first has it", "A='1'\nA='2'\n", "1", ""},
		{"no value", "A=''\nA='2'\n", "", ""},
		{"another name", "AB='1'", "", ""},
		{"comments, empty lines, spaces", "# note\n\n \t\n\t# A='2'\n\t A='1'\t\n", "1", ""},
		{"a comment after it", "A='1' # one", "1", ""},
		{"a comment without a space", "A='1'#one", "1", ""},
		{"nothing means anything", `A='$(B) $C \n "x" #=` + "'", `$(B) $C \n "x" #=`, ""},
		{"more lines than one", "B='\nA=x'\nA='1\n# no comment\n2'\n", "1\n# no comment\n2", ""},
		{"written on Windows", "B='2'\r\nA='1\r\n2'\r\n", "1\n2", ""},
		{"any name", "export B='1'\nb.-/$='2'\nA='3'", "3", ""},
		{"a space after =", "A= '1'\nA='2'", "", ""},
		{"a space after = of others", "B= x\nC=\t'\nA='2'", "2", ""},
		{"lines after it are not read", "A='1'\nB=2\nC", "1", ""},
		{"a space before =", "A ='1'", "", "line 1: space between A and ="},
		{"a space before = of others", "B\t='1'\nA='1'", "", "line 1: space between B and ="},
		{"no quotes", "B=2\nA='1'", "", "line 1: the value of B is not in single quotes"},
		{"double quotes", `A="1"`, "", "line 1: the value of A is not in single quotes"},
		{"nothing", "A=", "", "line 1: the value of A is not in single quotes"},
		{"on the next line", "A=\n'1'", "", "line 1: the value of A is not in single quotes"},
		{"never closed", "\nA='1\nB=2", "", "line 2: the value of A has no closing quote"},
		{"one after the other", "A='1''2'", "", "line 1: unexpected text after the value of A"},
		{"with an expansion", "A='1'$B", "", "line 1: unexpected text after the value of A"},
		{"counts lines of values", "B='\n\n'\n\nC", "", "line 5: expected KEY='value'"},
		{"no name", "='1'", "", "line 1: no variable name"},
		{"a zero byte", "A='\x00'", "", "line 1: the value of A contains a zero byte"},
		{"a zero byte elsewhere", "B='\x00'\nA='1'", "1", ""},
		{"a long line", "A='" + line + "'\n", line, ""},
		{"too long a line", "\nA='" + line + "xx'\n", "", "line 2: more than 65535 bytes"},
		{"many lines", strings.Repeat("#\n", 1<<18) + "A='1'", "1", ""},
		{"after the first MiB", strings.Repeat("#\n", 1<<19)[:podenv.MaxFile], "", "A is not in the first 1048576 bytes"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, _, err := podenv.ValueInFile([]byte(tc.text), "A", 37)
			if tc.failure != "" {
				assert.EqualError(t, err, tc.failure)
				assert.Empty(t, got)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tc.want, got)
		})
	}
}

// The syntax after a value depends on the minor version (kubernetes/kubernetes#143221).
func TestEnvFilesOf138(t *testing.T) { // pe-9
	const suffix, word = "line 1: unexpected text after the value of A", "line 1: unexpected text after the space that follows A="
	for text, want := range map[string]string{
		"A='1' # one": "", "A='1'\t# one": "", "A='1' ": "", "A= # none": "", "A= ": "",
		"A='1'#one": suffix, "A='1' b": suffix, "A= '1'": word, "A= x": word,
	} {
		_, found, err := podenv.ValueInFile([]byte(text), "A", 38)
		if want == "" {
			assert.NoError(t, err, text)
			assert.True(t, found, text)
			continue
		}
		assert.EqualError(t, err, want, text)
		assert.False(t, found, text)
		_, found, err = podenv.ValueInFile([]byte(text), "A", 37)
		if text == "A='1' b" {
			assert.EqualError(t, err, want, text)
			continue
		}
		assert.NoError(t, err, text)
		assert.True(t, found, text)
	}
}

// A key with an empty value differs from a key that is absent (kubernetes/kubernetes#142665).
func TestEnvFilesHaveEmptyValues(t *testing.T) { // pe-9
	for text, want := range map[string]bool{"A=''": true, "A= # none": true, "B='1'": false, "": false} {
		value, found, err := podenv.ValueInFile([]byte(text), "A", runtime.KubernetesMinor)
		require.NoError(t, err, text)
		assert.Empty(t, value, text)
		assert.Equal(t, want, found, text)
	}
}

// The value of a key can be formatted and parsed again with the same result.
func FuzzValueInFile(f *testing.F) {
	for _, seed := range []string{"A='1'\n", "# x\n A='b\nc' # d\r\nA=''", "A='1''2'", "=", "'", "A='\x00'", "A= '"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		value, _, err := podenv.ValueInFile(data, "A", runtime.KubernetesMinor)
		if err != nil || value == "" {
			require.Empty(t, value)
			return
		}
		if strings.ContainsAny(value, "'\x00") {
			t.Fatalf("A = %q", value)
		}
		again, _, err := podenv.ValueInFile([]byte("A='"+value+"'"), "A", runtime.KubernetesMinor)
		require.NoError(t, err)
		require.Equal(t, strings.ReplaceAll(value, "\r\n", "\n"), again)
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
	for _, path := range []string{"full", "over", "in", "dir/../full"} {
		data, err := podenv.ReadFile(dir, path)
		require.NoError(t, err, path)
		assert.Len(t, data, podenv.MaxFile)
	}
	for _, path := range []string{"out", "dir", "../secret", "/etc/passwd"} {
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
