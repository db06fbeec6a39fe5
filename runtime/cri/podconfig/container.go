package podconfig

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/podenv"
)

// Container returns what an instance of a container is made from (section 4.10).
// The error is what its waiting message shows, with the reason
// CreateContainerConfigError.
func Container(in Input, inst Instance) (*runtimeapi.ContainerConfig, error) {
	pod, c := in.Pod, inst.Container
	if pod == nil || c == nil {
		return nil, errors.New("podconfig: Input.Pod or Instance.Container is nil")
	}
	if inst.RestartCount < 0 {
		return nil, fmt.Errorf("podconfig: Instance.RestartCount is %d", inst.RestartCount)
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
		return nil, fmt.Errorf("the command is %w", err)
	}
	args, err := expand(c.Args, inst.Env)
	if err != nil {
		return nil, fmt.Errorf("the arguments are %w", err)
	}
	resources := containerResources(in, c)
	resources.CpusetCpus, resources.CpusetMems = inst.CPUs, inst.MemoryNodes
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
		LogPath:     filepath.Join(c.Name, fmt.Sprintf("%d.log", inst.RestartCount)), // rt-85
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
	for _, name := range inst.CDIDevices {
		config.CDIDevices = append(config.CDIDevices, &runtimeapi.CDIDevice{Name: name})
	}
	MapIDs(config)
	return config, nil
}

// containerImage returns the image of a CreateContainer request. A kubelet sends the
// pod's annotations and the runtime handler with pulls and volumes only.
func containerImage(spec *runtimeapi.ImageSpec) *runtimeapi.ImageSpec {
	if spec == nil {
		return nil
	}
	return &runtimeapi.ImageSpec{Image: spec.Image, UserSpecifiedImage: spec.UserSpecifiedImage}
}

// expand replaces the references to variables in args (pe-13). References to
// variables that don't exist are left as they are.
func expand(args []string, env []v1.EnvVar) ([]string, error) {
	values := make(map[string]string, len(env))
	for i := range env {
		values[env[i].Name] = env[i].Value
	}
	return podenv.ExpandAll(args, func(name string) (string, bool) { value, ok := values[name]; return value, ok })
}

// signal returns the CRI's name of a signal, SIGNAL_SIGRTMINPLUS1 for SIGRTMIN+1;
// for one that it does not have, the runtime's default.
func signal(s v1.Signal) runtimeapi.Signal {
	name := strings.NewReplacer("+", "PLUS", "-", "MINUS").Replace(string(s))
	return runtimeapi.Signal(runtimeapi.Signal_value["SIGNAL_"+name])
}

// StopSignalOf is the API's name of a signal of the CRI, SIGRTMIN+1 for
// SIGNAL_SIGRTMINPLUS1; "" for the runtime's default, which is how one that is too
// old to tell says nothing, and for what is no signal.
func StopSignalOf(s runtimeapi.Signal) v1.Signal {
	name, ok := runtimeapi.Signal_name[int32(s)]
	if !ok || s == runtimeapi.Signal_SIGNAL_RUNTIME_DEFAULT {
		return ""
	}
	return v1.Signal(strings.NewReplacer("SIGNAL_", "", "PLUS", "+", "MINUS", "-").Replace(name))
}

// ephemeral returns the pod's ephemeral container of that name, or nil.
func ephemeral(pod *v1.Pod, name string) *v1.EphemeralContainer {
	for i := range pod.Spec.EphemeralContainers {
		if e := &pod.Spec.EphemeralContainers[i]; e.Name == name {
			return e
		}
	}
	return nil
}
