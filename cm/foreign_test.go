package cm_test

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/cm"
	"github.com/kubeparts/kubeparts/cm/cgroups"
)

// A ledger contains the pods of a node. The tests call it from one goroutine.
type ledger map[types.UID]bool

func (l *ledger) Owns(uid types.UID) bool { return (*l)[uid] }

func (l *ledger) Own(uid types.UID) error {
	if uid == "unrecorded" {
		return errors.New("disk is full")
	}
	(*l)[uid] = true
	return nil
}

// A node that starts beside another one with the same cgroup root removed its cgroups, and
// killed the processes in them, because it did not know the pods.
func TestCgroupsOfAnotherNodeAreLeftUnchanged(t *testing.T) {
	for name, own := range map[string]*ledger{"with a ledger": {}, "without one": nil} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			volumes := false
			cfg := cm.Config{Pods: cm.PodCgroups{IgnoreForeign: true, HasVolumes: func(types.UID) bool { return volumes }}, Logger: slog.New(slog.NewTextHandler(&out, nil))}
			if own != nil {
				cfg.Pods.Ledger = own
			}
			n := newNode(t, cfg)
			var theirs []cgroups.Name
			for _, p := range []*v1.Pod{pod("g-9", guaranteed), pod("b-9", burstable), pod("e-9", besteffort)} {
				name := n.PodName(p)
				n.tree.Run(name.Child("c"), false, 77)
				theirs = append(theirs, name)
			}
			require.NoError(t, n.Setup(t.Context()))
			require.NoError(t, n.Ensure(t.Context(), pod("own-1", burstable)))
			for i := range 6 {
				volumes = i%2 == 1
				require.NoError(t, n.Retain(t.Context(), func(types.UID) bool { return false }))
			}
			for _, name := range theirs {
				pids, err := n.tree.Processes(name)
				require.NoError(t, err)
				assert.Equal(t, []int{77}, pids, "%v", name)
				assert.Equal(t, 1, strings.Count(out.String(), `left unchanged" cgroup=`+name.Path(cgroups.Cgroupfs)), "%s", out.String())
			}
			assert.False(t, n.there("/kubepods/burstable/podown-1"))
		})
	}
}

func TestSetupRefusesProcessesInCgroupsOfAnotherNode(t *testing.T) {
	theirs := cgroups.Name{"kubepods", "besteffort", "podtheirs"}
	n := newNode(t, cm.Config{Pods: cm.PodCgroups{Ledger: &ledger{"ours": true}}})
	n.tree.Run(cgroups.Name{"kubepods", "podours", "c"}, false, 1234)
	n.tree.Tamper(cgroups.Name{"kubepods", "burstable", "podempty"}, cgroups.Resources{})
	require.NoError(t, n.Setup(t.Context()), "its own pods, and an empty cgroup")

	n.tree.Run(theirs.Child("c"), false, 4321)
	before := n.tree.String()
	err := n.Setup(t.Context())
	require.ErrorIs(t, err, cm.ErrForeign)
	assert.EqualError(t, err, "cm: processes run in cgroups of pods that this node does not know: 1 pods below /kubepods; /kubepods/besteffort/podtheirs has processes [4321]")
	assert.Equal(t, before, n.tree.String(), "nothing is changed")

	n.tree.Fail(func(op string, _ cgroups.Name) error {
		if op == "processes" {
			return fs.ErrPermission
		}
		return nil
	})
	require.ErrorIs(t, n.Setup(t.Context()), fs.ErrPermission, "what cannot be read is not taken for empty")
}

// A cgroup that exists and cannot be changed is the same as one that cannot be created.
func TestSetupReturnsThatCgroupsCannotBeChanged(t *testing.T) {
	n := newNode(t, cm.Config{})
	require.NoError(t, n.Setup(t.Context()))
	n.tree.Fail(func(op string, _ cgroups.Name) error {
		if op == "write" {
			return fs.ErrPermission
		}
		return nil
	})
	require.ErrorIs(t, n.Setup(t.Context()), fs.ErrPermission)
}

func TestAPodIsRecordedBeforeItsCgroupIsCreated(t *testing.T) {
	own := &ledger{}
	n := newNode(t, cm.Config{Pods: cm.PodCgroups{Ledger: own}})
	require.NoError(t, n.Setup(t.Context()))
	require.ErrorContains(t, n.Ensure(t.Context(), pod("unrecorded", burstable)), "disk is full")
	assert.False(t, n.there("/kubepods/burstable/podunrecorded"))
	require.NoError(t, n.Ensure(t.Context(), pod("b-1", burstable)))
	assert.True(t, own.Owns("b-1"))
	n.tree.Tamper(n.PodName(pod("b-2", burstable)), cgroups.Resources{})
	require.NoError(t, n.Ensure(t.Context(), pod("b-2", burstable)), "a cgroup that exists already")
	assert.True(t, own.Owns("b-2"))
}
