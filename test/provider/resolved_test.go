package provider_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/kube/client"
	"github.com/kubeparts/kubeparts/kube/provider"
	"github.com/kubeparts/kubeparts/podworker/pipeline"
	"github.com/kubeparts/kubeparts/runtime/containers"
	"github.com/kubeparts/kubeparts/runtime/containers/containerstest"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/resolved"
	"github.com/kubeparts/kubeparts/volume/token"
)

// A copying backend copies files into its instances, as a service of container instances does.
type copying struct {
	*containerstest.Backend
	mu    sync.Mutex
	files map[string]string // content by path
}

func (c *copying) put(v containers.Volume) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range v.Files {
		c.files[v.Path+"/"+f.Path] = string(f.Data)
	}
}

func (c *copying) Run(ctx context.Context, inst containers.Container) (string, error) {
	for _, v := range inst.Volumes {
		c.put(v)
	}
	return c.Backend.Run(ctx, inst)
}

func (c *copying) UpdateFiles(_ context.Context, _ string, v containers.Volume) error {
	c.put(v)
	return nil
}

func (c *copying) at(path string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.files[path]
}

// copyingProvider returns the configuration of a provider over a copying backend whose pods are resolved by the same
// rules as those of a kubelet: variables by the engine of package containers, files by a resolved.Resolver. It runs
// their source of objects.
func (c *cluster) copyingProvider(backend *copying) provider.Config {
	var resolver *resolved.Resolver
	objects, err := client.NewObjects(client.ObjectsConfig{Client: c.client, Strategy: client.Watch, Changed: func(kind, namespace, name string) { resolver.ObjectChanged(kind, namespace, name) }})
	require.NoError(c.t, err)
	tokens, err := token.New(token.Config{Get: objects.Token})
	require.NoError(c.t, err)
	resolver, err = resolved.New(resolved.Config{Objects: objects, Tokens: tokens})
	require.NoError(c.t, err)
	dir := c.t.TempDir()
	rt, err := containers.New(containers.Config{
		Backend: backend, Node: nodeName, Support: containers.Support{Files: true},
		Engine: cri.Config{Name: "copying", Dirs: cri.Dirs{Root: dir + "/root", PodLogs: dir + "/logs"}, Providers: cri.Providers{Objects: objects}},
	})
	require.NoError(c.t, err)
	ctx, stop := context.WithCancel(context.WithoutCancel(c.t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- objects.Run(ctx) }()
	c.t.Cleanup(func() {
		stop()
		require.NoError(c.t, <-ended)
		require.NoError(c.t, rt.Close())
	})
	return provider.Config{Runtime: rt, Volumes: resolver, Adjust: []compose.Adjustment{compose.Adjust(func(p *pipeline.Config) { p.Resources.Objects = objects })}}
}

func TestAProviderOfABackendThatCopiesResolvesPods(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		core := c.client.CoreV1()
		settings, err := core.ConfigMaps("default").Create(t.Context(), &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings"}, Data: map[string]string{"level": "debug"}}, metav1.CreateOptions{})
		require.NoError(t, err)
		_, err = core.ServiceAccounts("default").Create(t.Context(), &v1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}, metav1.CreateOptions{})
		require.NoError(t, err)
		_, err = core.Services("default").Create(t.Context(), &v1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db"},
			Spec:       v1.ServiceSpec{ClusterIP: "10.0.0.9", Ports: []v1.ServicePort{{Port: 5432}}},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		backend := &copying{Backend: new(containerstest.Backend), files: map[string]string{}}
		_, stop := c.startWith(c.copyingProvider(backend), true)
		defer stop()
		_, err = core.Pods("default").Create(t.Context(), &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
			Spec: v1.PodSpec{
				NodeName: nodeName, ServiceAccountName: "web",
				Containers: []v1.Container{{
					Name: "app", Image: "web:1", Args: []string{"--level=$(LEVEL)"},
					Env: []v1.EnvVar{
						{Name: "LEVEL", ValueFrom: &v1.EnvVarSource{ConfigMapKeyRef: &v1.ConfigMapKeySelector{LocalObjectReference: v1.LocalObjectReference{Name: "settings"}, Key: "level"}}},
						{Name: "NODE", ValueFrom: &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{FieldPath: "spec.nodeName"}}},
					},
					VolumeMounts: []v1.VolumeMount{{Name: "all", MountPath: "/etc/all"}},
				}},
				Volumes: []v1.Volume{{Name: "all", VolumeSource: v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{Sources: []v1.VolumeProjection{
					{ConfigMap: &v1.ConfigMapProjection{LocalObjectReference: v1.LocalObjectReference{Name: "settings"}}},
					{ServiceAccountToken: &v1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: new(int64(3600))}},
				}}}}},
			},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		pod := c.after(2*time.Second, "web")
		require.Equal(t, v1.PodRunning, pod.Status.Phase, "%+v", pod.Status)
		instances := backend.Instances()
		require.Len(t, instances, 1)
		env := map[string]string{}
		for _, e := range instances[0].Env {
			env[e.Name] = e.Value
		}
		assert.Equal(t, "debug", env["LEVEL"])
		assert.Equal(t, nodeName, env["NODE"])
		assert.Equal(t, []string{"--level=debug"}, instances[0].Args)
		assert.Equal(t, "10.0.0.9", env["DB_SERVICE_HOST"])
		assert.Equal(t, "debug", backend.at("/etc/all/level"))
		first := backend.at("/etc/all/token")
		assert.NotEmpty(t, first)

		settings.Data["level"] = "info"
		_, err = core.ConfigMaps("default").Update(t.Context(), settings, metav1.UpdateOptions{})
		require.NoError(t, err)
		c.after(2*time.Second, "web")
		assert.Equal(t, "info", backend.at("/etc/all/level"), "without a poll")
		c.after(40*time.Minute, "web")
		assert.Equal(t, first, backend.at("/etc/all/token"))
		pod = c.after(10*time.Minute, "web")
		assert.NotEqual(t, first, backend.at("/etc/all/token"), "replaced after 80 % of its lifetime")
		assert.Len(t, backend.Instances(), 1)
		assert.Zero(t, pod.Status.ContainerStatuses[0].RestartCount)
		c.delete("web")
		assert.Nil(t, c.after(time.Minute, "web"))
		assert.Empty(t, backend.Instances())
	})
}
