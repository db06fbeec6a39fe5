package kubelet_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/kube/client"
	"github.com/kubeparts/kubeparts/kube/kubelet"
	"github.com/kubeparts/kubeparts/volume/objectdir"
)

var (
	_ kubelet.Objects = (*objectdir.Dir)(nil)
	_ kubelet.Objects = (*client.Objects)(nil)
)

func TestAChangedObjectOfACacheUpdatesItsVolume(t *testing.T) {
	cfg, remove := exampleConfig(`{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {
  containers: [{name: main, image: nginx, volumeMounts: [{name: v, mountPath: /v}]}], volumes: [{name: v, configMap: {name: settings}}]}}`)
	defer remove()
	cache := &edgeCache{configMaps: map[string]*v1.ConfigMap{}}
	cfg.Objects.Source = cache
	sink, running := whenRunning(1)
	cfg.Sink = sink
	k, err := kubelet.Open(t.Context(), cfg)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- k.Run(ctx) }()
	defer func() { stop(); require.NoError(t, <-stopped) }()

	set := func(color string) {
		cache.mu.Lock()
		cache.configMaps["default/settings"] = &v1.ConfigMap{Data: map[string]string{"color": color}}
		cache.mu.Unlock()
		k.ObjectChanged("ConfigMap", "default", "settings")
	}
	set("blue") // the pod waits for it
	<-running
	file := func() string {
		found, err := filepath.Glob(filepath.Join(cfg.RootDir, "pods", "*", "volumes", "kubernetes.io~configmap", "v", "color"))
		require.NoError(t, err)
		require.Len(t, found, 1)
		text, err := os.ReadFile(found[0])
		require.NoError(t, err)
		return string(text)
	}
	assert.Equal(t, "blue", file())
	set("green")
	require.Eventually(t, func() bool { return file() == "green" }, 30*time.Second, 10*time.Millisecond, "sooner than the next sync after a minute")
}

func TestObjectsExcludeOthers(t *testing.T) {
	cfg, remove := exampleConfig(podManifest("web"))
	defer remove()
	cfg.Objects = kubelet.LocalObjects{Source: new(edgeCache), Dir: t.TempDir()}
	_, err := kubelet.Open(t.Context(), cfg)
	assert.EqualError(t, err, "Config.Objects.Source excludes Config.Objects.Dir and Config.Cluster")
}
