package host_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/cm/cgroups"
	"github.com/kubeparts/kubeparts/cm/cgroups/host"
)

func TestADriverThatCannotWorkIsAnError(t *testing.T) {
	_, err := host.New(host.Config{Driver: "openrc"})
	assert.ErrorContains(t, err, `unknown driver "openrc"`)
}

// Tests without root: invalid names are rejected before any file is accessed, and the
// root cgroup is not removed.
func TestBadNamesReachNoFile(t *testing.T) {
	tree, err := host.New(host.Config{})
	if err != nil {
		t.Skip(err)
	}
	bad := cgroups.Name{"a_b"}
	assert.ErrorIs(t, tree.Apply(t.Context(), bad, cgroups.Resources{}), cgroups.ErrBadName)
	_, err = tree.Read(bad)
	assert.ErrorIs(t, err, cgroups.ErrBadName)
	_, err = tree.Stats(bad)
	assert.ErrorIs(t, err, cgroups.ErrBadName)
	assert.ErrorIs(t, tree.Remove(t.Context(), bad), cgroups.ErrBadName)
	assert.ErrorContains(t, tree.Remove(t.Context(), nil), "root of all cgroups")
	if tree.Facts().Version == 1 {
		_, err = host.Delegate()
		require.ErrorIs(t, err, errors.ErrUnsupported)
	}
}
