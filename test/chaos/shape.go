package chaos

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/internal/lab"
)

// A shape is a kind of pod with its expected behavior.
type shape struct {
	name   string
	weight int // relative frequency

	// longRunning is set if its regular containers run until the pod is deleted.
	longRunning bool

	// ends is the exit code of a pod that runs once, or -1.
	ends int32

	// stopped is the exit code of main on TERM: 137 if it is killed after its grace period,
	// -1 if the code is undefined.
	stopped int32

	grace int64 // seconds
	spec  func(*v1.PodSpec)
}

const untilTerm = "trap 'exit 0' TERM; sleep 100000 & wait"

var shapes = []shape{{
	name: "steady", weight: 5, longRunning: true, ends: -1, stopped: 0, grace: 10,
	spec: func(s *v1.PodSpec) { script(s, untilTerm) },
}, {
	name: "talker", weight: 4, longRunning: true, ends: -1, stopped: 0, grace: 10,
	spec: func(s *v1.PodSpec) {
		script(s, "trap 'exit 0' TERM; i=0; while :; do echo line $i; i=$((i+1)); sleep 0.3; done")
	},
}, {
	name: "graceful", weight: 2, longRunning: true, ends: -1, stopped: 7, grace: 20,
	spec: func(s *v1.PodSpec) { script(s, "trap 'sleep 3; exit 7' TERM; sleep 100000 & wait") },
}, {
	name: "stubborn", weight: 2, longRunning: true, ends: -1, stopped: 137, grace: 4,
	spec: func(s *v1.PodSpec) { script(s, "trap '' TERM; while :; do sleep 1; done") },
}, {
	name: "group", weight: 3, longRunning: true, ends: -1, stopped: 0, grace: 10,
	spec: func(s *v1.PodSpec) {
		script(s, untilTerm)
		always := v1.ContainerRestartPolicyAlways
		s.InitContainers = []v1.Container{
			{Name: "init", Command: sh("sleep 0.3; echo ready > /shared/init")},
			{Name: "sidecar", Command: sh(untilTerm), RestartPolicy: &always},
		}
		s.Containers = append(s.Containers, v1.Container{Name: "other", Command: sh("[ -f /shared/init ] || exit 9; " + untilTerm)})
		share(s, v1.Volume{Name: "shared"})
	},
}, {
	name: "probed", weight: 3, longRunning: true, ends: -1, stopped: 0, grace: 10,
	spec: func(s *v1.PodSpec) {
		script(s, "touch /tmp/well; "+untilTerm)
		probe := v1.Probe{
			ProbeHandler:  v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{"cat", "/tmp/well"}}},
			PeriodSeconds: 5, TimeoutSeconds: 20,
		}
		liveness := probe
		s.Containers[0].ReadinessProbe, s.Containers[0].LivenessProbe = &probe, &liveness
	},
}, {
	name: "volumes", weight: 3, longRunning: true, ends: -1, stopped: 0, grace: 10,
	spec: func(s *v1.PodSpec) {
		// The content of the volume shows that the volume was kept.
		script(s, "echo $CHAOS_UID >> /shared/starts; [ -f /config/key ] && [ -f /pod/name ] && grep -q $CHAOS_UID /shared/starts || exit 9; "+untilTerm)
		share(s, v1.Volume{Name: "shared"})
		s.Volumes = append(s.Volumes,
			v1.Volume{Name: "memory", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{Medium: v1.StorageMediumMemory, SizeLimit: new(resource.MustParse("1Mi"))}}},
			v1.Volume{Name: "config", VolumeSource: v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{LocalObjectReference: v1.LocalObjectReference{Name: "config"}}}},
			v1.Volume{Name: "pod", VolumeSource: v1.VolumeSource{DownwardAPI: &v1.DownwardAPIVolumeSource{Items: []v1.DownwardAPIVolumeFile{{Path: "name", FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.name"}}}}}},
		)
		for _, name := range []string{"memory", "config", "pod"} {
			s.Containers[0].VolumeMounts = append(s.Containers[0].VolumeMounts, v1.VolumeMount{Name: name, MountPath: "/" + name})
		}
	},
}, {
	name: "crasher", weight: 2, ends: -1, stopped: -1, grace: 2,
	spec: func(s *v1.PodSpec) { script(s, "sleep 2; exit 3") },
}, {
	name: "success", weight: 2, ends: 0, stopped: -1, grace: 5,
	spec: func(s *v1.PodSpec) {
		script(s, "trap 'exit 0' TERM; sleep 8 & wait")
		s.RestartPolicy = v1.RestartPolicyNever
	},
}, {
	name: "failure", weight: 2, ends: 4, stopped: -1, grace: 5,
	spec: func(s *v1.PodSpec) {
		script(s, "trap 'exit 4' TERM; sleep 5 & wait; exit 4")
		s.RestartPolicy = v1.RestartPolicyNever
	},
}}

func shapeNamed(name string) *shape {
	for i := range shapes {
		if shapes[i].name == name {
			return &shapes[i]
		}
	}
	return nil
}

func sh(script string) []string { return []string{"sh", "-c", script} }

func script(s *v1.PodSpec, script string) {
	s.Containers = []v1.Container{{Name: "main", Command: sh(script)}}
}

// share mounts a volume in all containers at its name.
func share(s *v1.PodSpec, vol v1.Volume) {
	if vol.VolumeSource == (v1.VolumeSource{}) {
		vol.EmptyDir = &v1.EmptyDirVolumeSource{}
	}
	s.Volumes = append(s.Volumes, vol)
	for _, list := range [][]v1.Container{s.InitContainers, s.Containers} {
		for i := range list {
			list[i].VolumeMounts = append(list[i].VolumeMounts, v1.VolumeMount{Name: vol.Name, MountPath: "/" + vol.Name})
		}
	}
}

// pod returns the pod of that name for the node. It is created with a node name, because the
// scheduler is not measured. dir is the directory of the run.
func (s *shape) pod(name, node, dir string) *v1.Pod {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: map[string]string{"shape": s.name}},
		Spec: v1.PodSpec{
			NodeName: node, TerminationGracePeriodSeconds: &s.grace,
			AutomountServiceAccountToken: new(false), EnableServiceLinks: new(false),
		},
	}
	s.spec(&pod.Spec)
	for _, list := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			c := &list[i]
			c.Image = lab.Busybox
			c.Resources.Requests = v1.ResourceList{v1.ResourceMemory: resource.MustParse("1Mi")}
			c.Env = []v1.EnvVar{
				{Name: chaosVar, Value: dir}, {Name: containerVar, Value: c.Name},
				{Name: uidVar, ValueFrom: &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.uid"}}},
			}
		}
	}
	return pod
}

// namespace is the namespace of the run's pods.
const namespace = "default"

func (s *shape) String() string { return fmt.Sprintf("%s (%d s)", s.name, s.grace) }
