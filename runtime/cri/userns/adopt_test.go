package userns_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime/cri/userns"
)

func mappingOf(first, length uint32) userns.Mappings {
	m := []userns.Mapping{{HostID: first, Length: length}}
	return userns.Mappings{UIDs: m, GIDs: m}
}

// The record of a pod is lost while its sandbox runs, and the agent starts again.
func TestTheIDsOfASandboxWithoutARecordAreNotAllocatedToAnotherPod(t *testing.T) {
	dir := t.TempDir()
	path := record(t, dir, "running", 65536)
	require.NoError(t, os.Remove(path))
	a, err := userns.New(userns.Config{RootDir: dir})
	require.NoError(t, err)
	require.NoError(t, a.Load())

	require.NoError(t, a.Adopt("running", mappingOf(65536, 65536)))
	other, err := a.Allocate("other")
	require.NoError(t, err)
	assert.Equal(t, mappingOf(131072, 65536), other)
	same, err := a.Allocate("running") // of its next container
	require.NoError(t, err)
	assert.Equal(t, mappingOf(65536, 65536), same)
	require.FileExists(t, path, "the record is written again")

	require.NoError(t, a.Retain(t.Context(), func(pod types.UID) bool { return pod == "other" }))
	require.NoFileExists(t, path)
}

// A sandbox may use IDs of an earlier configuration.
func TestIDsThatAreNotABlockKeepAllBlocksThatTheyOverlap(t *testing.T) {
	a, err := userns.New(userns.Config{RootDir: t.TempDir(), MaxPods: 2, Range: userns.Range{First: 65536, Length: 4 * 65536}})
	require.NoError(t, err)
	require.NoError(t, a.Adopt("wide", mappingOf(100000, 65536)))
	require.NoError(t, a.Adopt("outside", mappingOf(1<<30, 65536)))
	require.NoError(t, a.Adopt("below", mappingOf(1, 65535)))
	for _, want := range []uint32{3 * 65536, 4 * 65536} {
		m, err := a.Allocate(types.UID(rune('a' + want>>16)))
		require.NoError(t, err)
		assert.Equal(t, want, m.UIDs[0].HostID)
	}
	_, err = a.Allocate("third")
	require.ErrorContains(t, err, "all 4 blocks")
	require.NoError(t, a.Release("wide"))
	_, err = a.Allocate("third")
	require.NoError(t, err)
}

func TestAConflictOfIDsIsReportedOnce(t *testing.T) {
	a, err := userns.New(userns.Config{RootDir: t.TempDir()})
	require.NoError(t, err)
	m, err := a.Allocate("first")
	require.NoError(t, err)
	require.ErrorContains(t, a.Adopt("second", m), "pod second uses 65536 IDs from 65536, of which some are allocated to pod first")
	require.NoError(t, a.Adopt("second", m))
	require.Error(t, a.Adopt("", m))
	require.Error(t, a.Adopt("second", userns.Mappings{}))

	require.NoError(t, a.Release("second"))
	again, err := a.Allocate("first")
	require.NoError(t, err)
	assert.Equal(t, m, again)
}
