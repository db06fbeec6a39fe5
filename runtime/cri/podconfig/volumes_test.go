package podconfig_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
)

// The mounts of volumes, with their options.
func TestMountsOfVolumes(t *testing.T) {
	toContainer, both, none := v1.MountPropagationHostToContainer, v1.MountPropagationBidirectional, v1.MountPropagationNone
	enabled, possible, disabled := v1.RecursiveReadOnlyEnabled, v1.RecursiveReadOnlyIfPossible, v1.RecursiveReadOnlyDisabled
	able := podconfig.RuntimeHandler{RecursiveReadOnly: true}
	host := podconfig.Volume{HostPath: "/h"}
	for name, c := range map[string]struct {
		mount   v1.VolumeMount
		volume  podconfig.Volume
		handler podconfig.RuntimeHandler
		want    *runtimeapi.Mount
		err     string
	}{
		"vol-72 plain":         {v1.VolumeMount{}, host, able, &runtimeapi.Mount{}, ""},
		"vol-72 read-only":     {v1.VolumeMount{ReadOnly: true}, host, able, &runtimeapi.Mount{Readonly: true}, ""},
		"vol-72 of the volume": {v1.VolumeMount{}, podconfig.Volume{HostPath: "/h", ReadOnly: true, Relabel: true}, able, &runtimeapi.Mount{Readonly: true, SelinuxRelabel: true}, ""},
		"vol-72 none":          {v1.VolumeMount{MountPropagation: &none}, host, able, &runtimeapi.Mount{}, ""},
		"vol-72 host":          {v1.VolumeMount{MountPropagation: &toContainer}, host, able, &runtimeapi.Mount{Propagation: runtimeapi.MountPropagation_PROPAGATION_HOST_TO_CONTAINER}, ""},
		"vol-72 bidirectional": {v1.VolumeMount{MountPropagation: &both}, host, able, &runtimeapi.Mount{Propagation: runtimeapi.MountPropagation_PROPAGATION_BIDIRECTIONAL}, ""},
		"vol-73 enabled":       {v1.VolumeMount{ReadOnly: true, RecursiveReadOnly: &enabled}, host, able, &runtimeapi.Mount{Readonly: true, RecursiveReadOnly: true}, ""},
		"vol-73 possible":      {v1.VolumeMount{ReadOnly: true, RecursiveReadOnly: &possible}, host, able, &runtimeapi.Mount{Readonly: true, RecursiveReadOnly: true}, ""},
		"vol-73 impossible":    {v1.VolumeMount{ReadOnly: true, RecursiveReadOnly: &possible}, host, podconfig.RuntimeHandler{}, &runtimeapi.Mount{Readonly: true}, ""},
		"vol-73 disabled":      {v1.VolumeMount{RecursiveReadOnly: &disabled}, host, able, &runtimeapi.Mount{}, ""},
		"vol-73 unsupported":   {v1.VolumeMount{ReadOnly: true, RecursiveReadOnly: &enabled}, host, podconfig.RuntimeHandler{}, &runtimeapi.Mount{}, "recursiveReadOnly: Enabled is not supported by the runtime"},
		"vol-73 writable":      {v1.VolumeMount{RecursiveReadOnly: &enabled}, host, able, &runtimeapi.Mount{}, "recursiveReadOnly: Enabled requires readOnly: true"},
		"vol-73 propagation":   {v1.VolumeMount{ReadOnly: true, RecursiveReadOnly: &enabled, MountPropagation: &both}, host, able, &runtimeapi.Mount{}, "recursiveReadOnly: Enabled requires mountPropagation None, not Bidirectional"},
	} {
		t.Run(name, func(t *testing.T) {
			c.mount.Name, c.mount.MountPath = "v", "/v"
			container := &v1.Container{Name: "c", VolumeMounts: []v1.VolumeMount{c.mount}, TerminationMessagePath: "/dev/termination-log"}
			pod := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{*container}, Volumes: []v1.Volume{{Name: "v"}}}}
			pod.UID = "u"
			got, err := podconfig.Container(podconfig.PodInput{Pod: pod, Handler: c.handler, Node: podconfig.Node{Security: podconfig.Security{SELinux: true}}}, podconfig.ContainerInput{
				Container: container, Image: &runtimeapi.ImageSpec{Image: "i"}, Volumes: []podconfig.Volume{c.volume}, HostsFile: "/hosts", MessageFile: "/message",
			})
			if c.err != "" {
				assert.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			c.want.ContainerPath, c.want.HostPath = "/v", "/h"
			require.Len(t, got.Mounts, 3)
			assert.Equal(t, c.want.String(), got.Mounts[0].String())
			// vol-75: these follow the volumes.
			assert.Equal(t, "/etc/hosts", got.Mounts[1].ContainerPath)
			assert.Equal(t, "/dev/termination-log", got.Mounts[2].ContainerPath)
		})
	}
}
