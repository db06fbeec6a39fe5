package podconfig

import (
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/internal/podspec"
)

// sandboxNamespaces returns the namespaces of the sandbox, or nil where the
// kubelet says nothing of them: without a pod security context (rt-21). A pod
// that wants one of the host's says so anyway.
func sandboxNamespaces(in Input) (*runtimeapi.NamespaceOption, error) {
	opts, err := namespaces(in)
	if unspoken(in.Pod) {
		return nil, err
	}
	return opts, err
}

// unspoken reports whether the pod's sandbox says nothing of namespaces.
func unspoken(pod *v1.Pod) bool {
	spec := &pod.Spec
	return spec.SecurityContext == nil && !spec.HostNetwork && !spec.HostPID && !spec.HostIPC && !wantsUserNamespace(pod)
}

// containerNamespaces returns the namespaces of a container. Of user namespaces
// it says what the sandbox says: containerd 2 refuses a container that differs
// from its sandbox in that, also if one says nothing.
func containerNamespaces(in Input) (*runtimeapi.NamespaceOption, error) {
	opts, err := namespaces(in)
	if opts != nil && unspoken(in.Pod) {
		opts.UsernsOptions = nil
	}
	return opts, err
}

// namespaces returns the namespace modes of the pod (rt-22, se-9, se-17).
func namespaces(in Input) (*runtimeapi.NamespaceOption, error) {
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

func wantsUserNamespace(pod *v1.Pod) bool { return pod.Spec.HostUsers != nil && !*pod.Spec.HostUsers }

// userNamespace returns the pod's user namespace: the machine's, or its own with
// the mappings that were given to it (se-17).
func userNamespace(in Input) (*runtimeapi.UserNamespace, error) {
	if !wantsUserNamespace(in.Pod) {
		return &runtimeapi.UserNamespace{Mode: runtimeapi.NamespaceMode_NODE}, nil
	}
	if !in.Handler.UserNamespaces {
		return nil, errors.New("can't set `spec.hostUsers: false`, runtime does not support user namespaces")
	}
	if len(in.UserNamespace.GetUids()) == 0 || len(in.UserNamespace.GetGids()) == 0 {
		return nil, errors.New("hostUsers: false: the pod has no mappings of user IDs")
	}
	return &runtimeapi.UserNamespace{
		Mode: runtimeapi.NamespaceMode_POD, Uids: in.UserNamespace.Uids, Gids: in.UserNamespace.Gids,
	}, nil
}

// joinTarget lets an ephemeral container see the processes of its target
// (rt-84, se-9).
func joinTarget(opts *runtimeapi.NamespaceOption, in Input, inst Instance) error {
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

// AsksHandler reports whether the pod's configuration depends on what its
// runtime handler can do.
func AsksHandler(pod *v1.Pod) bool {
	asks := func(mounts []v1.VolumeMount) bool {
		for i := range mounts {
			if mode := mounts[i].RecursiveReadOnly; mode != nil && *mode != v1.RecursiveReadOnlyDisabled {
				return true
			}
		}
		return false
	}
	for c := range podspec.AllContainers(pod) {
		if asks(c.VolumeMounts) {
			return true
		}
	}
	return wantsUserNamespace(pod)
}
