package checkpoint_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/internal/checkpoint"
)

type record struct {
	Name  string           `json:"name"`
	Sizes map[string]int64 `json:"sizes,omitempty"`
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.json")
	for _, want := range []record{
		{Name: "<web> & \u2028 \"quoted\"", Sizes: map[string]int64{"b": 1 << 60, "a": -1}},
		{Name: "shorter"}, {},
	} {
		for _, write := range []func(string, any) error{checkpoint.Write, checkpoint.WriteUnsynced} {
			require.NoError(t, write(path, want))
			var got record
			require.NoError(t, checkpoint.Read(path, &got))
			assert.Equal(t, want, got)
			require.NoError(t, os.Remove(path))
		}
		require.NoError(t, checkpoint.WriteUnsynced(path, want))
	}
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	assert.Len(t, left, 1, "nothing is left beside the record")
}

func TestReadOfAMissingFileReturnsErrNotExist(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.json")
	err := checkpoint.Read(path, &record{})
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, path)
	assert.NotErrorIs(t, err, checkpoint.ErrCorrupt)
}

func TestABrokenRecordIsNamed(t *testing.T) {
	for name, content := range map[string]string{
		"empty":            "",
		"cut short":        `{"checksum":"00000000","da`,
		"another file":     `hello`,
		"null":             `null`,
		"no data":          `{"checksum":"00000000"}`,
		"no checksum":      `{"data":{"name":"x"}}`,
		"wrong checksum":   `{"checksum":"00000000","data":{"name":"x"}}`,
		"more behind it":   `{"checksum":"00000000","data":{}} {}`,
		"of another shape": `{"checksum":"` + "1c6d7d7b" + `","data":["a list"]}`,
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "a.json")
			require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
			err := checkpoint.Read(path, &record{})
			require.ErrorIs(t, err, checkpoint.ErrCorrupt)
			require.ErrorContains(t, err, path)
		})
	}
}

func TestARecordOfAnotherTypeIsCorrupt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.json")
	require.NoError(t, checkpoint.Write(path, []string{"a list"}))
	require.ErrorIs(t, checkpoint.Read(path, &record{}), checkpoint.ErrCorrupt)
}

func TestEveryChangedByteIsDetected(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.json")
	want := record{Name: "web", Sizes: map[string]int64{"memory": 1 << 30}}
	require.NoError(t, checkpoint.Write(path, want))
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	for i := range whole {
		for bit := range 8 {
			broken := append([]byte(nil), whole...)
			broken[i] ^= 1 << bit
			require.NoError(t, os.WriteFile(path, broken, 0o600))
			var got record
			// The case of a key's letters does not count in JSON.
			if err := checkpoint.Read(path, &got); err == nil {
				require.Equal(t, want, got, "byte %d, bit %d", i, bit)
			} else {
				require.ErrorIs(t, err, checkpoint.ErrCorrupt)
			}
		}
	}
	for n := range len(whole) - 1 { // without the end of its line it is complete
		require.NoError(t, os.WriteFile(path, whole[:n], 0o600))
		require.ErrorIs(t, checkpoint.Read(path, &record{}), checkpoint.ErrCorrupt, "cut at %d", n)
	}
}

func TestAFailedWriteKeepsTheOldRecord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.json")
	require.NoError(t, checkpoint.Write(path, record{Name: "old"}))
	err := checkpoint.Write(path, func() {})
	require.ErrorContains(t, err, path)
	// The temporary file of an interrupted write is replaced; an error is returned if
	// that is not possible.
	require.NoError(t, os.WriteFile(path+checkpoint.Temporary, []byte("half of a rec"), 0o600))
	require.NoError(t, checkpoint.Write(path, record{Name: "new"}))
	require.NoError(t, os.MkdirAll(filepath.Join(path+checkpoint.Temporary, "full"), 0o700))
	require.ErrorContains(t, checkpoint.Write(path, record{Name: "newer"}), path)
	var got record
	require.NoError(t, checkpoint.Read(path, &got))
	assert.Equal(t, "new", got.Name)

	nowhere := filepath.Join(t.TempDir(), "no", "a.json")
	require.ErrorIs(t, checkpoint.Write(nowhere, record{}), fs.ErrNotExist)
}

func TestARecordThatCouldNotBeReadBackIsNotWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.json")
	old := record{Name: "old"}
	require.NoError(t, checkpoint.Write(path, old))
	large := record{Name: strings.Repeat("x", checkpoint.MaxSize)}
	err := checkpoint.Write(path, large)
	require.ErrorIs(t, err, checkpoint.ErrTooLarge)
	require.ErrorContains(t, err, path)
	var got record
	require.NoError(t, checkpoint.Read(path, &got))
	assert.Equal(t, old, got, "the old record stays")

	// The limits of reading and writing are the same, to the byte.
	const size = 1000
	whole := record{Name: strings.Repeat("x", size-len(`{"checksum":"00000000","data":{"name":""}}`+"\n"))}
	require.NoError(t, checkpoint.WriteMax(path, whole, size))
	require.NoError(t, checkpoint.ReadMax(path, &got, size))
	assert.Equal(t, whole, got)
	require.ErrorIs(t, checkpoint.WriteMax(path, whole, size-1), checkpoint.ErrTooLarge)
	require.ErrorIs(t, checkpoint.ReadMax(path, &got, size-1), checkpoint.ErrTooLarge)
}

// Records that are not synced are appended: each interrupted write leaves the record before it.
func TestAnInterruptedAppendKeepsTheOldRecord(t *testing.T) {
	dir := t.TempDir()
	for name, first := range map[string]func(string, any) error{"synced": checkpoint.Write, "unsynced": checkpoint.WriteUnsynced} {
		path := filepath.Join(dir, name)
		require.NoError(t, first(path, record{Name: "old"}))
		old, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, checkpoint.WriteUnsynced(path, record{Name: "new"}))
		whole, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, string(old), string(whole[:len(old)]), "the old record is not touched")
		for n := len(old); n < len(whole)-1; n++ {
			for _, torn := range [][]byte{whole[:n], append(slices.Clone(whole[:n]), make([]byte, len(whole)-n)...)} { // also a hole
				require.NoError(t, os.WriteFile(path, torn, 0o600))
				var got record
				require.NoError(t, checkpoint.Read(path, &got))
				require.Equal(t, "old", got.Name, "cut at %d", n)
				require.NoError(t, checkpoint.WriteUnsynced(path, record{Name: "newer"}))
				require.NoError(t, checkpoint.Read(path, &got))
				require.Equal(t, "newer", got.Name, "cut at %d", n)
			}
		}
		require.NoError(t, checkpoint.Write(path, record{Name: "synced"}))
		var got record
		require.NoError(t, checkpoint.Read(path, &got))
		assert.Equal(t, "synced", got.Name)
	}
}

func TestAFileThatIsWrittenOftenStaysSmall(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.json")
	largest := int64(0)
	for i := range 10_000 {
		require.NoError(t, checkpoint.WriteUnsynced(path, record{Sizes: map[string]int64{"n": int64(i)}}))
		info, err := os.Stat(path)
		require.NoError(t, err)
		largest = max(largest, info.Size())
	}
	var got record
	require.NoError(t, checkpoint.Read(path, &got))
	assert.EqualValues(t, 9_999, got.Sizes["n"])
	assert.LessOrEqual(t, largest, int64(32<<10))
	require.NoFileExists(t, path+checkpoint.Temporary)

	// A large record replaces the file.
	large := record{Name: strings.Repeat("x", 1<<20)}
	for range 3 {
		require.NoError(t, checkpoint.WriteUnsynced(path, large))
	}
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Less(t, info.Size(), int64(1<<20+100))
	require.NoError(t, checkpoint.Read(path, &got))
	assert.Equal(t, large.Name, got.Name)
}

func FuzzRead(f *testing.F) {
	path := filepath.Join(f.TempDir(), "seed.json")
	if err := checkpoint.Write(path, record{Name: "web"}); err != nil {
		f.Fatal(err)
	}
	seed, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Add(append(seed, "\n{\"checksum\":\"0\",\"da"...))
	f.Add([]byte(`{"checksum":"","data":null}`))
	f.Add([]byte(`[[[[[[`))
	f.Fuzz(func(t *testing.T, content []byte) {
		path := filepath.Join(t.TempDir(), "a.json")
		require.NoError(t, os.WriteFile(path, content, 0o600))
		var got, again record
		switch err := checkpoint.Read(path, &got); {
		case errors.Is(err, checkpoint.ErrCorrupt):
		case err != nil:
			t.Fatalf("neither good nor corrupt: %v", err)
		default: // what was taken for good comes back the same
			require.NoError(t, checkpoint.Write(path, got))
			require.NoError(t, checkpoint.Read(path, &again))
			require.Equal(t, got, again)
		}
	})
}

// The umask, and what a write that was cut short left behind, do not show.
func TestReplaceSetsBytesAndPermissions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "record")
	require.NoError(t, os.WriteFile(path+checkpoint.Temporary, []byte("half of a record"), 0o600))
	for _, text := range []string{"old", "new"} {
		require.NoError(t, checkpoint.Replace(path, []byte(text), 0o666))
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, text, string(got))
		require.NoFileExists(t, path+checkpoint.Temporary)
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.EqualValues(t, 0o666, info.Mode().Perm())
	}
}
