package podconfig

import (
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/internal/podspec"
)

// sandboxNamespaces returns the namespaces of the sandbox; nil, as in the kubelet, for a pod
// without security context (rule rt-21), unless it uses a namespace of the host.
func sandboxNamespaces(in PodInput) (*runtimeapi.NamespaceOption, error) {
	opts, err := namespaces(in)
	if omitsNamespaces(in.Pod) {
		return nil, err
	}
	return opts, err
}

// omitsNamespaces reports whether the pod's sandbox is created without namespace options.
func omitsNamespaces(pod *v1.Pod) bool {
	spec := &pod.Spec
	return spec.SecurityContext == nil && !spec.HostNetwork && !spec.HostPID && !spec.HostIPC && !hasUserNamespace(pod)
}

// containerNamespaces returns the namespaces of a container. Its user namespace options are
// those of the sandbox: containerd 2 rejects a container whose options differ, or are set
// where the sandbox's are nil.
func containerNamespaces(in PodInput) (*runtimeapi.NamespaceOption, error) {
	opts, err := namespaces(in)
	if opts != nil && omitsNamespaces(in.Pod) {
		opts.UsernsOptions = nil
	}
	return opts, err
}

// namespaces returns the namespace modes of the pod (rule rt-22).
func namespaces(in PodInput) (*runtimeapi.NamespaceOption, error) {
	spec := &in.Pod.Spec
	mode := func(host bool) runtimeapi.NamespaceMode {
		if host {
			return runtimeapi.NamespaceMode_NODE
		}
		return runtimeapi.NamespaceMode_POD
	}
	opts := &runtimeapi.NamespaceOption{
		Network: mode(spec.HostNetwork), Ipc: mode(spec.HostIPC), Pid: runtimeapi.NamespaceMode_CONTAINER,
	}
	switch {
	case spec.HostPID:
		opts.Pid = runtimeapi.NamespaceMode_NODE
	case spec.ShareProcessNamespace != nil && *spec.ShareProcessNamespace:
		opts.Pid = runtimeapi.NamespaceMode_POD
	}
	users, err := userNamespace(in)
	opts.UsernsOptions = users
	return opts, err
}

func hasUserNamespace(pod *v1.Pod) bool { return pod.Spec.HostUsers != nil && !*pod.Spec.HostUsers }

// userNamespace returns the user namespace of the pod: the node's, or its own with the
// mappings of in.UserNamespace.
func userNamespace(in PodInput) (*runtimeapi.UserNamespace, error) {
	if !hasUserNamespace(in.Pod) {
		return &runtimeapi.UserNamespace{Mode: runtimeapi.NamespaceMode_NODE}, nil
	}
	if !in.Handler.UserNamespaces {
		return nil, errors.New("can't set `spec.hostUsers: false`, runtime does not support user namespaces")
	}
	if len(in.UserNamespace.GetUids()) == 0 || len(in.UserNamespace.GetGids()) == 0 {
		return nil, errors.New("hostUsers: false: the pod has no user ID mappings")
	}
	return &runtimeapi.UserNamespace{
		Mode: runtimeapi.NamespaceMode_POD, Uids: in.UserNamespace.Uids, Gids: in.UserNamespace.Gids,
	}, nil
}

// joinTarget makes an ephemeral container share the PID namespace of its target container.
func joinTarget(opts *runtimeapi.NamespaceOption, in PodInput, inst ContainerInput) error {
	e := ephemeral(in.Pod, inst.Container.Name)
	if e == nil || e.TargetContainerName == "" {
		return nil
	}
	if inst.TargetID == "" {
		return fmt.Errorf("unable to find target container %v", e.TargetContainerName)
	}
	if opts.Pid == runtimeapi.NamespaceMode_CONTAINER {
		opts.Pid, opts.TargetId = runtimeapi.NamespaceMode_TARGET, inst.TargetID
	}
	return nil
}

// DependsOnHandler reports whether the configuration of the pod depends on the features of
// its runtime handler.
func DependsOnHandler(pod *v1.Pod) bool {
	depends := func(mounts []v1.VolumeMount) bool {
		for i := range mounts {
			if mode := mounts[i].RecursiveReadOnly; mode != nil && *mode != v1.RecursiveReadOnlyDisabled {
				return true
			}
		}
		return false
	}
	for c := range podspec.AllContainers(pod) {
		if depends(c.VolumeMounts) {
			return true
		}
	}
	return hasUserNamespace(pod)
}
