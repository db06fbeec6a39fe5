package volume_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/volumetest"
)

// A limitedPlugin is the fake plugin as an Attacher.
type limitedPlugin struct {
	*volumetest.Plugin
	exceeded map[string]bool // by name of the volume
	err      error
	calls    []string
}

func (p *limitedPlugin) AttachLimitExceeded(ctx context.Context, spec *volume.Spec) (bool, error) {
	p.calls = append(p.calls, spec.DirName())
	if _, ok := ctx.Deadline(); !ok {
		return false, errors.New("no deadline")
	}
	return p.exceeded[spec.DirName()], p.err
}

// vol-85: a pod with a volume that cannot be attached to this node is rejected when its mount times out.
func TestAPodIsRejectedIfAVolumeExceedsTheAttachLimit(t *testing.T) {
	for name, c := range map[string]struct {
		volumes  []string
		attached string // suffix of its unique name
		exceeded map[string]bool
		err      error
		canceled bool

		calls    []string
		rejected bool
	}{
		"exceeded":                 {volumes: []string{"a"}, exceeded: map[string]bool{"pv-a": true}, calls: []string{"pv-a"}, rejected: true},
		"one of two":               {volumes: []string{"a", "b"}, exceeded: map[string]bool{"pv-b": true}, calls: []string{"pv-a", "pv-b"}, rejected: true},
		"not exceeded":             {volumes: []string{"a"}, calls: []string{"pv-a"}},
		"attached":                 {volumes: []string{"a", "b"}, attached: "pv-a", exceeded: map[string]bool{"pv-a": true}, calls: []string{"pv-b"}},
		"attachment not read":      {volumes: []string{"a"}, exceeded: map[string]bool{"pv-a": true}, err: errors.New("no server"), calls: []string{"pv-a"}},
		"the pod is being deleted": {volumes: []string{"a"}, exceeded: map[string]bool{"pv-a": true}, canceled: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := &node{root: t.TempDir(), mounter: new(volumetest.Mounter)}
				p := &limitedPlugin{Plugin: &volumetest.Plugin{Mounter: n.mounter, Capabilities: volumetest.Capabilities{Attach: true}}, exceeded: c.exceeded, err: c.err}
				start(t, n, func(cfg *volume.Config) {
					cfg.Plugins = []volume.Plugin{p}
					bound := new(claims)
					for _, name := range c.volumes {
						bound.bound(name)
					}
					cfg.PersistentVolumes.Claims = bound
					cfg.PersistentVolumes.Node = apiNode{attached: func(name v1.UniqueVolumeName) (string, bool) {
						return "", c.attached != "" && strings.HasSuffix(string(name), c.attached)
					}}
				})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if c.canceled {
					time.AfterFunc(time.Minute, cancel)
				}
				_, err := n.Mount(ctx, claimPod("p", c.volumes...))
				var failed *volume.PodError
				require.ErrorAs(t, err, &failed)
				assert.Equal(t, c.calls, p.calls)
				rejection, ok := errors.AsType[*runtime.Rejection](err)
				require.Equal(t, c.rejected, ok, "%v", err)
				if ok {
					assert.Equal(t, runtime.Rejection{Reason: "VolumeAttachmentLimitExceeded", Message: "Node has reached its volume attachment limit, rejecting pod"}, *rejection)
				}
				require.NoError(t, n.Unmount(t.Context(), claimPod("p", c.volumes...)))
			})
		})
	}
}
