package podconfig_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
)

func TestMountsThatAreAddedAreMappedToo(t *testing.T) { // se-20
	pod := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "a"}}}}
	in := podconfig.PodInput{Pod: pod, Handler: podconfig.RuntimeHandler{UserNamespaces: true}}
	inst := podconfig.ContainerInput{Container: &pod.Spec.Containers[0], HostsFile: "/hosts"}
	own := []*runtimeapi.IDMapping{{HostId: 1, Length: 1}}
	made := func() *runtimeapi.ContainerConfig {
		config, err := podconfig.Container(in, inst)
		require.NoError(t, err)
		config.Mounts = append(config.Mounts, &runtimeapi.Mount{HostPath: "/gpu"}, nil, &runtimeapi.Mount{HostPath: "/own", UidMappings: own, GidMappings: own})
		podconfig.AddIDMappings(config)
		return config
	}
	for _, m := range made().Mounts[:2] {
		assert.Empty(t, m.UidMappings, "the pod has no user namespace")
	}
	pod.Spec.HostUsers = new(false)
	ids := []*runtimeapi.IDMapping{{HostId: 131072, Length: 65536}}
	in.UserNamespace = &runtimeapi.UserNamespace{Uids: ids, Gids: ids}
	mounts := made().Mounts
	assert.Equal(t, ids, mounts[0].UidMappings)
	assert.Equal(t, ids, mounts[1].GidMappings)
	assert.Equal(t, own, mounts[3].UidMappings, "those that it has stay")
	podconfig.AddIDMappings(nil)
}
