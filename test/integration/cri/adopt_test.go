package cri_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/remote"
)

// adoptedOnContainerd checks that containers can be created in a sandbox that a
// kubelet or an older version created, whatever its user namespace options are: the
// container must agree with the configuration in the call, not with the one that
// the sandbox was created from.
func adoptedOnContainerd(t *testing.T, s *sharedEngine) {
	client, err := remote.Dial(t.Context(), s.daemon.Endpoint, remote.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close(context.Background())) })
	node := &runtimeapi.UserNamespace{Mode: runtimeapi.NamespaceMode_NODE}
	for name, options := range map[string]*runtimeapi.NamespaceOption{
		"nothing": nil, "modes": {Pid: runtimeapi.NamespaceMode_CONTAINER},
		"users": {Pid: runtimeapi.NamespaceMode_CONTAINER, UsernsOptions: node},
	} {
		for _, spoken := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				a := s.enginePod(t, script("web", serves))
				a.pod.Spec.SecurityContext = nil
				if spoken {
					a.pod.Spec.SecurityContext = &v1.PodSecurityContext{}
				}
				id, err := client.Runtime.RunPodSandbox(t.Context(), &runtimeapi.PodSandboxConfig{
					Metadata: &runtimeapi.PodSandboxMetadata{Name: a.pod.Name, Namespace: a.pod.Namespace, Uid: string(a.pod.UID)},
					Labels: map[string]string{
						"io.kubernetes.pod.name": a.pod.Name, "io.kubernetes.pod.namespace": a.pod.Namespace, "io.kubernetes.pod.uid": string(a.pod.UID),
					},
					LogDirectory: filepath.Join(a.dir, "pods", a.pod.Namespace+"_"+a.pod.Name+"_"+string(a.pod.UID)),
					Linux:        &runtimeapi.LinuxPodSandboxConfig{SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{NamespaceOptions: options}},
				}, "")
				require.NoError(t, err)
				st := a.runs()
				require.Len(t, st.Sandboxes, 1)
				assert.Equal(t, id, st.Sandboxes[0].ID)
				assert.Equal(t, id, st.Container("web").SandboxID)
				assert.Equal(t, runtime.ContainerRunning, st.Container("web").State)
			})
		}
	}
}
