package kubelet

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/runtime"
)

func TestAResolvConfThatPodsCannotHaveIsAnEventOfTheNode(t *testing.T) { // dn-9
	cfg := runnable(t, "resolvConf: "+filepath.Join(t.TempDir(), "none")+"\n")
	var events []runtime.Event
	cfg.Record = func(e runtime.Event) { events = append(events, e) }
	k, err := Open(t.Context(), cfg)
	require.NoError(t, err)
	require.NoError(t, k.Close())
	i := slices.IndexFunc(events, func(e runtime.Event) bool { return e.Reason == "CheckLimitsForResolvConf" })
	require.GreaterOrEqual(t, i, 0)
	assert.Equal(t, "Node/n1", events[i].Object.Kind+"/"+events[i].Object.Name)
	assert.Contains(t, events[i].Message, "no such file or directory")
}
