package apitest

import (
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubeparts/kubeparts/podsource/manifest"
)

// complete sets defaults, unless Server.Extension does, and the tolerations of pods.
func (s *Server) complete(o object) {
	pod, ok := o.(*v1.Pod)
	switch {
	case s.Extension == nil:
		setDefaults(o)
	case ok:
		defaultTolerations(pod)
	}
}

// setDefaults sets the defaults of pods, of the objects with pod templates and of a few
// others, as documented in their Go types.
func setDefaults(o object) {
	switch o := o.(type) {
	case *v1.Pod:
		o.Spec = manifest.Default(o).Spec
		defaultTolerations(o)
	case *v1.PodTemplate:
		defaultTemplate(&o.Template)
	case *v1.ReplicationController:
		set(&o.Spec.Replicas, 1)
		defaultController(o)
	case *appsv1.Deployment:
		defaultDeployment(&o.Spec)
	case *appsv1.ReplicaSet:
		set(&o.Spec.Replicas, 1)
		defaultTemplate(&o.Spec.Template)
	case *appsv1.StatefulSet:
		defaultStatefulSet(&o.Spec)
	case *appsv1.DaemonSet:
		defaultDaemonSet(&o.Spec)
	case *batchv1.Job:
		defaultJob(&o.Spec, o)
	case *batchv1.CronJob:
		defaultTo(&o.Spec.ConcurrencyPolicy, batchv1.AllowConcurrent)
		set(&o.Spec.Suspend, false)
		set(&o.Spec.SuccessfulJobsHistoryLimit, 3)
		set(&o.Spec.FailedJobsHistoryLimit, 1)
		defaultJobSpec(&o.Spec.JobTemplate.Spec)
	case *v1.Service:
		defaultService(&o.Spec)
	case *v1.Secret:
		defaultTo(&o.Type, v1.SecretTypeOpaque)
		for name, value := range o.StringData {
			if o.Data == nil {
				o.Data = map[string][]byte{}
			}
			o.Data[name] = []byte(value)
		}
		o.StringData = nil
	case *v1.PersistentVolume:
		defaultTo(&o.Spec.PersistentVolumeReclaimPolicy, v1.PersistentVolumeReclaimRetain)
		set(&o.Spec.VolumeMode, v1.PersistentVolumeFilesystem)
	case *v1.PersistentVolumeClaim:
		set(&o.Spec.VolumeMode, v1.PersistentVolumeFilesystem)
	}
}

func set[T any](p **T, value T) {
	if *p == nil {
		*p = &value
	}
}

func defaultTo[T comparable](p *T, value T) {
	if zero := *new(T); *p == zero {
		*p = value
	}
}

// defaultController also sets the selector and the labels, to the labels of the template.
func defaultController(o *v1.ReplicationController) {
	t := o.Spec.Template
	if t == nil {
		return
	}
	if len(o.Spec.Selector) == 0 {
		o.Spec.Selector = maps.Clone(t.Labels)
	}
	if len(o.Labels) == 0 {
		o.Labels = maps.Clone(t.Labels)
	}
	defaultTemplate(t)
}

func defaultTemplate(t *v1.PodTemplateSpec) {
	t.Spec = manifest.Default(&v1.Pod{Spec: t.Spec}).Spec
}

// defaultTolerations adds the tolerations that admission adds to a pod.
func defaultTolerations(pod *v1.Pod) {
	for _, key := range []string{v1.TaintNodeNotReady, v1.TaintNodeUnreachable} {
		tolerated := false
		for _, t := range pod.Spec.Tolerations {
			tolerated = tolerated || (t.Key == key || t.Key == "") && (t.Effect == v1.TaintEffectNoExecute || t.Effect == "")
		}
		if !tolerated {
			pod.Spec.Tolerations = append(pod.Spec.Tolerations, v1.Toleration{
				Key: key, Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoExecute, TolerationSeconds: new(int64(300)),
			})
		}
	}
}

func defaultDeployment(spec *appsv1.DeploymentSpec) {
	set(&spec.Replicas, 1)
	set(&spec.RevisionHistoryLimit, 10)
	set(&spec.ProgressDeadlineSeconds, 600)
	defaultTo(&spec.Strategy.Type, appsv1.RollingUpdateDeploymentStrategyType)
	if spec.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType {
		set(&spec.Strategy.RollingUpdate, appsv1.RollingUpdateDeployment{})
		set(&spec.Strategy.RollingUpdate.MaxUnavailable, intstr.FromString("25%"))
		set(&spec.Strategy.RollingUpdate.MaxSurge, intstr.FromString("25%"))
	}
	defaultTemplate(&spec.Template)
}

func defaultStatefulSet(spec *appsv1.StatefulSetSpec) {
	set(&spec.Replicas, 1)
	set(&spec.RevisionHistoryLimit, 10)
	defaultTo(&spec.PodManagementPolicy, appsv1.OrderedReadyPodManagement)
	defaultTo(&spec.UpdateStrategy.Type, appsv1.RollingUpdateStatefulSetStrategyType)
	if spec.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType {
		set(&spec.UpdateStrategy.RollingUpdate, appsv1.RollingUpdateStatefulSetStrategy{})
		set(&spec.UpdateStrategy.RollingUpdate.Partition, 0)
	}
	set(&spec.PersistentVolumeClaimRetentionPolicy, appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{})
	defaultTo(&spec.PersistentVolumeClaimRetentionPolicy.WhenDeleted, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	defaultTo(&spec.PersistentVolumeClaimRetentionPolicy.WhenScaled, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	defaultTemplate(&spec.Template)
	for i := range spec.VolumeClaimTemplates {
		claim := &spec.VolumeClaimTemplates[i]
		claim.APIVersion, claim.Kind = "v1", "PersistentVolumeClaim"
		set(&claim.Spec.VolumeMode, v1.PersistentVolumeFilesystem)
		defaultTo(&claim.Status.Phase, v1.ClaimPending)
	}
}

func defaultDaemonSet(spec *appsv1.DaemonSetSpec) {
	set(&spec.RevisionHistoryLimit, 10)
	defaultTo(&spec.UpdateStrategy.Type, appsv1.RollingUpdateDaemonSetStrategyType)
	if spec.UpdateStrategy.Type == appsv1.RollingUpdateDaemonSetStrategyType {
		set(&spec.UpdateStrategy.RollingUpdate, appsv1.RollingUpdateDaemonSet{})
		set(&spec.UpdateStrategy.RollingUpdate.MaxUnavailable, intstr.FromInt32(1))
		set(&spec.UpdateStrategy.RollingUpdate.MaxSurge, intstr.FromInt32(0))
	}
	defaultTemplate(&spec.Template)
}

func defaultJobSpec(spec *batchv1.JobSpec) { defaultTemplate(&spec.Template) }

// defaultJob also generates the selector, which selects the pods by the UID of the job. A
// new job has no UID yet: its selector is set when it is stored.
func defaultJob(spec *batchv1.JobSpec, job *batchv1.Job) {
	if spec.Completions == nil && spec.Parallelism == nil {
		spec.Completions, spec.Parallelism = new(int32(1)), new(int32(1))
	}
	set(&spec.Parallelism, 1)
	set(&spec.BackoffLimit, 6)
	set(&spec.Suspend, false)
	set(&spec.CompletionMode, batchv1.NonIndexedCompletion)
	if spec.ManualSelector != nil && !*spec.ManualSelector {
		spec.ManualSelector = nil
	}
	set(&spec.PodReplacementPolicy, batchv1.TerminatingOrFailed)
	if spec.ManualSelector == nil && spec.Selector == nil && job.UID != "" {
		labels := map[string]string{
			batchv1.ControllerUidLabel: string(job.UID), "controller-uid": string(job.UID), batchv1.JobNameLabel: job.Name, "job-name": job.Name,
		}
		spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{batchv1.ControllerUidLabel: string(job.UID)}}
		for name, value := range labels {
			if spec.Template.Labels == nil {
				spec.Template.Labels = map[string]string{}
			}
			spec.Template.Labels[name] = value
		}
	}
	defaultTemplate(&spec.Template)
}

func defaultService(spec *v1.ServiceSpec) {
	defaultTo(&spec.SessionAffinity, v1.ServiceAffinityNone)
	defaultTo(&spec.Type, v1.ServiceTypeClusterIP)
	for i := range spec.Ports {
		port := &spec.Ports[i]
		defaultTo(&port.Protocol, v1.ProtocolTCP)
		if port.TargetPort == (intstr.IntOrString{}) || port.TargetPort == intstr.FromString("") {
			port.TargetPort = intstr.FromInt32(port.Port)
		}
	}
	if spec.Type != v1.ServiceTypeExternalName {
		set(&spec.InternalTrafficPolicy, v1.ServiceInternalTrafficPolicyCluster)
	}
	if spec.Type == v1.ServiceTypeLoadBalancer {
		set(&spec.AllocateLoadBalancerNodePorts, true)
	}
	if spec.Type == v1.ServiceTypeNodePort || spec.Type == v1.ServiceTypeLoadBalancer {
		defaultTo(&spec.ExternalTrafficPolicy, v1.ServiceExternalTrafficPolicyCluster)
	}
}

// qos returns the QoS class of a pod.
func qos(pod *v1.Pod) v1.PodQOSClass {
	requested, guaranteed := false, true
	for _, c := range append(append([]v1.Container(nil), pod.Spec.InitContainers...), pod.Spec.Containers...) {
		for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
			request, limit := c.Resources.Requests[name], c.Resources.Limits[name]
			if !request.IsZero() || !limit.IsZero() {
				requested = true
			}
			if limit.IsZero() || !request.IsZero() && request.Cmp(limit) != 0 {
				guaranteed = false
			}
		}
	}
	switch {
	case !requested:
		return v1.PodQOSBestEffort
	case guaranteed:
		return v1.PodQOSGuaranteed
	}
	return v1.PodQOSBurstable
}
