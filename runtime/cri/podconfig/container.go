package podconfig

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime/podenv"
)

// Container returns the configuration with which a container is created. The message of
// the error is for the container's waiting state, with the reason
// CreateContainerConfigError.
func Container(in PodInput, inst ContainerInput) (*runtimeapi.ContainerConfig, error) {
	pod, c := in.Pod, inst.Container
	if pod == nil || c == nil {
		return nil, errors.New("podconfig: PodInput.Pod or ContainerInput.Container is nil")
	}
	if inst.RestartCount < 0 {
		return nil, fmt.Errorf("podconfig: ContainerInput.RestartCount is %d", inst.RestartCount)
	}
	security, err := containerSecurity(in, inst)
	if err != nil {
		return nil, err
	}
	mounts, err := containerMounts(in, inst)
	if err != nil {
		return nil, err
	}
	devices, err := containerDevices(pod, inst)
	if err != nil {
		return nil, err
	}
	command, err := expand(c.Command, inst.Env)
	if err != nil {
		return nil, fmt.Errorf("command: %w", err)
	}
	args, err := expand(c.Args, inst.Env)
	if err != nil {
		return nil, fmt.Errorf("args: %w", err)
	}
	resources := containerResources(in, c)
	resources.CpusetCpus, resources.CpusetMems = inst.Allocated.CPUs, inst.Allocated.MemoryNodes
	config := &runtimeapi.ContainerConfig{
		Metadata:    &runtimeapi.ContainerMetadata{Name: c.Name, Attempt: uint32(inst.RestartCount)},
		Image:       containerImage(inst.Image),
		Command:     command,
		Args:        args,
		WorkingDir:  c.WorkingDir,
		Labels:      containerLabels(pod, c),
		Annotations: containerAnnotations(pod, inst),
		Mounts:      mounts,
		Devices:     devices,
		LogPath:     filepath.Join(c.Name, fmt.Sprintf("%d.log", inst.RestartCount)),
		Stdin:       c.Stdin,
		StdinOnce:   c.StdinOnce,
		Tty:         c.TTY,
		Linux:       &runtimeapi.LinuxContainerConfig{Resources: resources, SecurityContext: security},
	}
	if c.Lifecycle != nil && c.Lifecycle.StopSignal != nil {
		config.StopSignal = signal(*c.Lifecycle.StopSignal)
	}
	for _, v := range inst.Env {
		config.Envs = append(config.Envs, &runtimeapi.KeyValue{Key: v.Name, Value: []byte(v.Value)})
	}
	for _, name := range inst.Allocated.CDIDevices {
		config.CDIDevices = append(config.CDIDevices, &runtimeapi.CDIDevice{Name: name})
	}
	AddIDMappings(config)
	return config, nil
}

// containerImage returns the image of a CreateContainer request. As in the kubelet, the
// pod's annotations and the runtime handler are sent only with pulls and volumes.
func containerImage(spec *runtimeapi.ImageSpec) *runtimeapi.ImageSpec {
	if spec == nil {
		return nil
	}
	return &runtimeapi.ImageSpec{Image: spec.Image, UserSpecifiedImage: spec.UserSpecifiedImage}
}

// expand replaces references to variables in args. A reference to an undefined variable
// is not changed.
func expand(args []string, env []v1.EnvVar) ([]string, error) {
	values := make(map[string]string, len(env))
	for i := range env {
		values[env[i].Name] = env[i].Value
	}
	return podenv.ExpandAll(args, func(name string) (string, bool) { value, ok := values[name]; return value, ok })
}

// signal converts a signal of the API to one of the CRI, for example SIGRTMIN+1 to
// SIGNAL_SIGRTMINPLUS1; an unknown one to the runtime's default.
func signal(s v1.Signal) runtimeapi.Signal {
	name := strings.ReplaceAll(strings.ReplaceAll(string(s), "+", "PLUS"), "-", "MINUS")
	return runtimeapi.Signal(runtimeapi.Signal_value["SIGNAL_"+name])
}

// StopSignalOf converts a signal of the CRI to one of the API, for example
// SIGNAL_SIGRTMINPLUS1 to SIGRTMIN+1. It returns "" for an unknown signal and for the
// runtime's default, which runtimes without support for stop signals report.
func StopSignalOf(s runtimeapi.Signal) v1.Signal {
	name, ok := runtimeapi.Signal_name[int32(s)]
	if !ok || s == runtimeapi.Signal_SIGNAL_RUNTIME_DEFAULT {
		return ""
	}
	name = strings.TrimPrefix(name, "SIGNAL_")
	return v1.Signal(strings.ReplaceAll(strings.ReplaceAll(name, "PLUS", "+"), "MINUS", "-"))
}

// ephemeral returns the ephemeral container of the name; nil if there is none.
func ephemeral(pod *v1.Pod, name string) *v1.EphemeralContainer {
	for i := range pod.Spec.EphemeralContainers {
		if e := &pod.Spec.EphemeralContainers[i]; e.Name == name {
			return e
		}
	}
	return nil
}
