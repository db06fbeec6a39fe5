package state_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/cm/state"
)

func TestAStoreHoldsOneRecord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cpu_manager_state")
	for name, store := range map[string]state.Store{"file": state.File(path), "memory": new(state.Memory)} {
		t.Run(name, func(t *testing.T) {
			_, err := store.Load()
			require.ErrorIs(t, err, fs.ErrNotExist)
			require.NoError(t, store.Keep(), "there is nothing to set aside")
			require.NoError(t, store.Save([]byte("one")))
			require.NoError(t, store.Save([]byte("two")))
			got, err := store.Load()
			require.NoError(t, err)
			assert.Equal(t, "two", string(got))
			require.NoError(t, store.Keep())
			_, err = store.Load()
			require.ErrorIs(t, err, fs.ErrNotExist)
		})
	}
	kept, err := os.ReadFile(path + state.Backup)
	require.NoError(t, err)
	assert.Equal(t, "two", string(kept))
}

func TestAFileTooLargeIsNotRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "huge")
	require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("x", 16<<20+1)), 0o600))
	_, err := state.File(path).Load()
	require.ErrorContains(t, err, path)
	require.ErrorContains(t, err, "more than")
}

func TestARecordTooLargeToBeReadIsNotWritten(t *testing.T) {
	store := state.File(filepath.Join(t.TempDir(), "state"))
	require.NoError(t, store.Save([]byte("old")))
	require.ErrorContains(t, store.Save(make([]byte, 16<<20+1)), "the limit is 16777216")
	record, err := store.Load()
	require.NoError(t, err)
	require.Equal(t, "old", string(record))
}

func ExampleFile() {
	dir, _ := os.MkdirTemp("", "")
	defer os.RemoveAll(dir)
	store := state.File(filepath.Join(dir, "cpu_manager_state"))
	_ = store.Save([]byte("{}"))
	record, err := store.Load()
	fmt.Println(string(record), err)
	// Output: {} <nil>
}
