package volume_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/volumetest"
)

// A node is a manager over the fake plugin, on a directory that outlives it.
type node struct {
	t       testing.TB
	root    string
	mounter *volumetest.Mounter
	plugin  *volumetest.Plugin
	*volume.Manager

	stop func()

	mu     sync.Mutex
	events []runtime.Event
	woken  int
	ops    []volume.OperationInfo
}

// apiNode is the node in the cluster. A nil function returns no node, a volume without a device path
// that is attached, and that volumes are reported as in use.
type apiNode struct {
	object   func() *v1.Node
	attached func(name v1.UniqueVolumeName) (string, bool)
	inUse    func(name v1.UniqueVolumeName) bool
}

func (n apiNode) Object() *v1.Node {
	if n.object == nil {
		return nil
	}
	return n.object()
}

func (n apiNode) Attached(name v1.UniqueVolumeName) (string, bool) {
	if n.attached == nil {
		return "", true
	}
	return n.attached(name)
}

func (n apiNode) InUse(name v1.UniqueVolumeName) bool { return n.inUse == nil || n.inUse(name) }

// start starts an agent on the node; change may change its configuration.
func start(t testing.TB, n *node, change ...func(*volume.Config)) *node {
	t.Helper()
	if n == nil {
		n = &node{root: t.TempDir(), mounter: new(volumetest.Mounter)}
	}
	if n.plugin == nil {
		n.plugin = &volumetest.Plugin{Mounter: n.mounter}
	}
	n.t = t
	cfg := volume.Config{
		RootDir: n.root, Plugins: []volume.Plugin{n.plugin}, Mounter: n.mounter, StatsPeriod: -1,
		Record: func(e runtime.Event) {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.events = append(n.events, e)
		},
		Hooks: volume.Hooks{
			Reconciled: func() {
				n.mu.Lock()
				defer n.mu.Unlock()
				n.woken++
			},
			Operated: func(o volume.OperationInfo) {
				n.mu.Lock()
				defer n.mu.Unlock()
				n.ops = append(n.ops, o)
			},
		},
	}
	for _, f := range change {
		f(&cfg)
	}
	m, err := volume.New(cfg)
	require.NoError(t, err)
	n.Manager = m
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { assert.NoError(t, m.Run(ctx)) })
	n.stop = func() { cancel(); wg.Wait() }
	t.Cleanup(n.stop)
	return n
}

// emitted returns the events, once all have been emitted: Mount does not wait for
// them.
func (n *node) emitted() []string {
	synctest.Wait()
	n.mu.Lock()
	defer n.mu.Unlock()
	var list []string
	for _, e := range n.events {
		list = append(list, e.Type+" "+e.Reason+" "+e.Message)
	}
	return list
}

func (n *node) wokenTimes() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.woken
}

// pod returns one whose container mounts the volumes of those names.
func pod(uid string, volumes ...string) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: uid, Namespace: "default", UID: types.UID(uid)}}
	c := v1.Container{Name: "c"}
	for _, name := range volumes {
		p.Spec.Volumes = append(p.Spec.Volumes, v1.Volume{Name: name, VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}})
		c.VolumeMounts = append(c.VolumeMounts, v1.VolumeMount{Name: name, MountPath: "/" + name})
	}
	p.Spec.Containers = []v1.Container{c}
	return p
}

// wait advances the time, in a bubble.
func wait(d time.Duration) { <-time.After(d) }
