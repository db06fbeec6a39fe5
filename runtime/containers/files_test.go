package containers_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	node "github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/containers"
	"github.com/kubeparts/kubeparts/runtime/containers/containerstest"
	"github.com/kubeparts/kubeparts/runtime/resolved"
	"github.com/kubeparts/kubeparts/status"
	"github.com/kubeparts/kubeparts/volume/payload"
	"github.com/kubeparts/kubeparts/volume/token"
)

// A copying backend keeps the files of its instances: "path in the instance: content".
type copying struct {
	*containerstest.Backend
	mu      sync.Mutex
	files   map[string]string
	updates int
	fails   error // of the next update
}

func (c *copying) put(v containers.Volume) {
	for _, f := range v.Files {
		path := v.Path
		if f.Path != "" {
			path += "/" + f.Path
		}
		c.files[path] = fmt.Sprint(f.Mode, " ", string(f.Data))
	}
}

func (c *copying) Run(ctx context.Context, inst containers.Container) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.files == nil {
		c.files = map[string]string{}
	}
	for _, v := range inst.Volumes {
		c.put(v)
	}
	return c.Backend.Run(ctx, inst)
}

func (c *copying) UpdateFiles(_ context.Context, _ string, v containers.Volume) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.updates++
	if err := c.fails; err != nil {
		c.fails = nil
		return err
	}
	for path := range c.files {
		if len(path) > len(v.Path) && path[:len(v.Path)+1] == v.Path+"/" {
			delete(c.files, path)
		}
	}
	c.put(v)
	return nil
}

func (c *copying) at(path string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.files[path]
}

func (c *copying) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.updates
}

// settings has one ConfigMap.
type settings struct {
	mu   sync.Mutex
	data map[string]string
}

func (s *settings) set(data map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.data = data
}

func (s *settings) ConfigMap(context.Context, string, string) (*v1.ConfigMap, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &v1.ConfigMap{Data: s.data}, nil
}

func (*settings) Secret(context.Context, string, string) (*v1.Secret, error) {
	return nil, fs.ErrNotExist
}
func (*settings) Services(context.Context, string) ([]*v1.Service, bool) { return nil, true }

func resolverOf(t *testing.T, objects *settings) *resolved.Resolver {
	issued := 0
	tokens, err := token.New(token.Config{Get: func(_ context.Context, _, _ string, r *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error) {
		issued++
		r.Status.Token, r.Status.ExpirationTimestamp = fmt.Sprint("token-", issued), metav1.NewTime(time.Now().Add(time.Hour))
		return r, nil
	}})
	require.NoError(t, err)
	r, err := resolved.New(resolved.Config{Objects: objects, Tokens: tokens})
	require.NoError(t, err)
	return r
}

// filed is a pod with a ConfigMap, a file of it as a sub-path, and the default token.
func filed() *v1.Pod {
	c := image("long")
	c.Name = "main"
	c.VolumeMounts = []v1.VolumeMount{
		{Name: "config", MountPath: "/etc/app"}, {Name: "config", MountPath: "/single", SubPath: "level"},
		{Name: "token", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"},
	}
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", UID: "u1"},
		Spec: v1.PodSpec{RestartPolicy: v1.RestartPolicyAlways, Containers: []v1.Container{c}, Volumes: []v1.Volume{
			{Name: "config", VolumeSource: v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{LocalObjectReference: v1.LocalObjectReference{Name: "settings"}}}},
			{Name: "token", VolumeSource: v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{Sources: []v1.VolumeProjection{
				{ServiceAccountToken: &v1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: new(int64(3600))}},
			}}}},
		}},
	}
}

func copyingConfig(t *testing.T) (containers.Config, *copying) {
	below := &copying{Backend: newFake(nil)}
	cfg := configOf(t, below)
	cfg.Support = containers.Support{Files: true}
	return cfg, below
}

func TestABackendThatCopiesHasTheFilesAtItsStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg, below := copyingConfig(t)
		rt := open(t, cfg)
		objects := &settings{data: map[string]string{"level": "debug"}}
		resolver, pod := resolverOf(t, objects), filed()
		require.Nil(t, rt.Admit(t.Context(), pod))
		syncPod := func() error {
			volumes, err := resolver.Mount(t.Context(), pod)
			require.NoError(t, err)
			_, err = rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod, Volumes: volumes})
			return err
		}
		require.NoError(t, syncPod())
		assert.Equal(t, "-rw-r--r-- debug", below.at("/etc/app/level"))
		assert.Equal(t, "-rw-r--r-- debug", below.at("/single"))
		assert.Equal(t, "-rw-r--r-- token-1", below.at("/var/run/secrets/kubernetes.io/serviceaccount/token"))

		// Equal contents are not passed again.
		updates := below.count()
		require.NoError(t, syncPod())
		assert.Equal(t, updates, below.count())

		// A change is passed, and again after an error. A sub-path has no updates.
		objects.set(map[string]string{"level": "info", "color": "blue"})
		below.fails = errors.New("unreachable")
		assert.ErrorContains(t, syncPod(), `update volume "config" of instance `)
		assert.Equal(t, "-rw-r--r-- debug", below.at("/etc/app/level"))
		require.NoError(t, syncPod())
		assert.Equal(t, "-rw-r--r-- info", below.at("/etc/app/level"))
		assert.Equal(t, "-rw-r--r-- blue", below.at("/etc/app/color"))
		assert.Equal(t, "-rw-r--r-- debug", below.at("/single"))

		// A restarted agent updates what it adopted.
		objects.set(map[string]string{"level": "error"})
		rt = open(t, cfg)
		require.NoError(t, syncPod())
		assert.Equal(t, "-rw-r--r-- error", below.at("/etc/app/level"))
		assert.Empty(t, below.at("/etc/app/color"))
		st, err := rt.PodStatus(t.Context(), pod.UID)
		require.NoError(t, err)
		assert.Len(t, st.Containers, 1, "it was not restarted")
	})
}

func TestAVolumeWithoutContentIsRejectedWithoutMounts(t *testing.T) {
	cfg, _ := copyingConfig(t)
	rt := open(t, cfg)
	pod := filed()
	pod.Spec.Volumes[0].VolumeSource = v1.VolumeSource{EmptyDir: new(v1.EmptyDirVolumeSource)}
	rejection := rt.Admit(t.Context(), pod)
	require.NotNil(t, rejection)
	assert.Contains(t, rejection.Message, `volume "config" in container "main"`)
}

// discard is a status sink.
type discard struct{}

func (discard) UpdatePodStatus(context.Context, *v1.Pod, v1.PodStatus) error { return nil }
func (discard) DeletePod(context.Context, *v1.Pod) error                     { return nil }

var _ status.Sink = discard{}

// The agent passes a changed ConfigMap at once, and a token when 80 % of its lifetime are over, to a running
// machine, without a restart.
func TestAnAgentKeepsTheFilesOfItsMachinesCurrent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg, below := copyingConfig(t)
		rt := open(t, cfg)
		objects := &settings{data: map[string]string{"level": "debug"}}
		resolver, source := resolverOf(t, objects), new(podsource.Memory)
		a, err := node.New(node.Config{
			NodeName: "node", Runtime: rt, Sink: discard{}, Sources: map[string]podsource.PodSource{podsource.APISource: source},
			Subsystems: node.Subsystems{Volumes: resolver},
		})
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- a.Run(ctx) }()
		source.Set(filed())
		time.Sleep(5 * time.Second)
		require.Equal(t, "-rw-r--r-- debug", below.at("/etc/app/level"))

		objects.set(map[string]string{"level": "info"})
		resolver.ObjectChanged(payload.KindConfigMap, "shop", "settings")
		time.Sleep(time.Second)
		assert.Equal(t, "-rw-r--r-- info", below.at("/etc/app/level"))

		const path = "/var/run/secrets/kubernetes.io/serviceaccount/token"
		time.Sleep(47 * time.Minute)
		assert.Equal(t, "-rw-r--r-- token-1", below.at(path))
		time.Sleep(time.Minute)
		assert.Equal(t, "-rw-r--r-- token-2", below.at(path))
		states, err := below.List(ctx)
		require.NoError(t, err)
		assert.Len(t, slices.DeleteFunc(states, func(s containers.State) bool { return s.Phase != containers.Running }), 1)
		stop()
		require.NoError(t, <-done)
	})
}
