package containers_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/containers"
	"github.com/kubeparts/kubeparts/runtime/containers/containerstest"
)

// A plain backend has none of the optional interfaces.
type plain struct{ containers.Backend }

// Unwrap hides the interfaces of the embedded backend. Without it, New returns an error.
func (plain) Unwrap() any { return nil }

// What a backend does not support is a rejected pod, whether its agent asks or not.
func TestWhatABackendDoesNotSupportIsRejected(t *testing.T) {
	execProbe := &v1.Probe{ProbeHandler: v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{"true"}}}}
	for name, c := range map[string]struct {
		change  func(*v1.PodSpec)
		support containers.Support // with which it is accepted
		why     string
	}{
		"volume": {func(s *v1.PodSpec) {
			s.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: "data", MountPath: "/data"}}
		},
			containers.Support{Mounts: true}, `volume "data" in container "main"`},
		"two containers": {func(s *v1.PodSpec) { s.Containers = append(s.Containers, v1.Container{Name: "two"}) },
			containers.Support{SeparateContainers: true}, "containers that share a network"},
		"host network": {func(s *v1.PodSpec) { s.HostNetwork = true }, containers.Support{HostNamespaces: true}, "host namespaces"},
		"device": {func(s *v1.PodSpec) { s.Containers[0].VolumeDevices = []v1.VolumeDevice{{Name: "disk"}} },
			containers.Support{Devices: true}, `block devices in container "main"`},
		"exec probe": {func(s *v1.PodSpec) { s.Containers[0].LivenessProbe = execProbe }, containers.Support{}, `the exec probe of container "main"`},
		"token": {func(s *v1.PodSpec) {
			s.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: "kube-api-access", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"}}
		}, containers.Support{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "main", Image: "image"}}}}
			pod.Name, pod.Namespace, pod.UID = "pod", "default", "uid"
			c.change(&pod.Spec)
			cfg := configOf(t, plain{new(containerstest.Backend)})
			cfg.Support = containers.Support{}
			rt, err := containers.New(cfg)
			require.NoError(t, err)
			rejection := rt.Admit(t.Context(), pod)
			if c.why == "" {
				assert.Nil(t, rejection)
				return
			}
			require.NotNil(t, rejection)
			assert.Equal(t, "UnsupportedByBackend", rejection.Reason)
			assert.Equal(t, "The backend of this node does not support "+c.why, rejection.Message)
			_, err = rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
			var same *runtime.Rejection
			assert.ErrorAs(t, err, &same)
			if c.support != (containers.Support{}) {
				cfg.Support = c.support
				rt, err := containers.New(cfg)
				require.NoError(t, err)
				assert.Nil(t, rt.Admit(t.Context(), pod))
			}
		})
	}
}

// A wrong Config is an error of New that names the field.
func TestNewNamesTheInvalidField(t *testing.T) {
	for field, change := range map[string]func(*containers.Config){
		"Config.Backend":     func(c *containers.Config) { c.Backend = nil },
		"Config.Node":        func(c *containers.Config) { c.Node = "" },
		"Config.Engine.Name": func(c *containers.Config) { c.Engine.Name = "" },
	} {
		cfg := configOf(t, new(containerstest.Backend))
		change(&cfg)
		_, err := containers.New(cfg)
		if field == "Config.Engine.Name" {
			assert.ErrorContains(t, err, "Config.Engine: cri: Config.Name")
		} else {
			assert.ErrorContains(t, err, field)
		}
	}
}
