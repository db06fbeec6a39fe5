package client

import (
	v1 "k8s.io/api/core/v1"
)

// Kinds of objects that an [Objects] reads by name.
const (
	kindConfigMap    = "ConfigMap"
	kindSecret       = "Secret"
	kindService      = "Service"
	kindRuntimeClass = "RuntimeClass"
	kindCSIDriver    = "CSIDriver"
)

// A key identifies an object or, with an empty name, all objects of a kind in a namespace.
type key struct{ kind, namespace, name string }

// A use is the purpose of a reference of a pod.
type use int

const (
	onDemand use = iota // read when a container is created
	pushed              // in a volume, so that changes are reported
)

// references returns the objects that a pod refers to (rule oc-2).
func references(pod *v1.Pod) map[key]use {
	refs := map[key]use{}
	add := func(kind, name string, u use) {
		if name != "" {
			k := key{kind, pod.Namespace, name}
			refs[k] = max(refs[k], u)
		}
	}
	spec := &pod.Spec
	for _, s := range spec.ImagePullSecrets {
		add(kindSecret, s.Name, onDemand)
	}
	for i := range spec.InitContainers {
		environment(spec.InitContainers[i].Env, spec.InitContainers[i].EnvFrom, add)
	}
	for i := range spec.Containers {
		environment(spec.Containers[i].Env, spec.Containers[i].EnvFrom, add)
	}
	for i := range spec.EphemeralContainers {
		environment(spec.EphemeralContainers[i].Env, spec.EphemeralContainers[i].EnvFrom, add)
	}
	for i := range spec.Volumes {
		volume(&spec.Volumes[i].VolumeSource, add)
		if csi := spec.Volumes[i].CSI; csi != nil {
			refs[key{kindCSIDriver, "", csi.Driver}] = onDemand
		}
	}
	if spec.RuntimeClassName != nil && *spec.RuntimeClassName != "" {
		refs[key{kindRuntimeClass, "", *spec.RuntimeClassName}] = onDemand
	}
	refs[kubernetesService] = onDemand
	if spec.EnableServiceLinks == nil || *spec.EnableServiceLinks {
		refs[key{kindService, pod.Namespace, ""}] = onDemand
	}
	return refs
}

// kubernetesService is the service of which all containers have environment variables (rule
// pe-12).
var kubernetesService = key{kindService, v1.NamespaceDefault, "kubernetes"}

func environment(env []v1.EnvVar, from []v1.EnvFromSource, add func(kind, name string, u use)) {
	for i := range env {
		switch source := env[i].ValueFrom; {
		case source == nil:
		case source.ConfigMapKeyRef != nil:
			add(kindConfigMap, source.ConfigMapKeyRef.Name, onDemand)
		case source.SecretKeyRef != nil:
			add(kindSecret, source.SecretKeyRef.Name, onDemand)
		}
	}
	for i := range from {
		if from[i].ConfigMapRef != nil {
			add(kindConfigMap, from[i].ConfigMapRef.Name, onDemand)
		}
		if from[i].SecretRef != nil {
			add(kindSecret, from[i].SecretRef.Name, onDemand)
		}
	}
}

// volume adds the objects that a volume consists of, or is mounted with.
func volume(source *v1.VolumeSource, add func(kind, name string, u use)) {
	local := func(ref *v1.LocalObjectReference) {
		if ref != nil {
			add(kindSecret, ref.Name, onDemand)
		}
	}
	switch {
	case source.Secret != nil:
		add(kindSecret, source.Secret.SecretName, pushed)
	case source.ConfigMap != nil:
		add(kindConfigMap, source.ConfigMap.Name, pushed)
	case source.Projected != nil:
		for _, p := range source.Projected.Sources {
			if p.Secret != nil {
				add(kindSecret, p.Secret.Name, pushed)
			}
			if p.ConfigMap != nil {
				add(kindConfigMap, p.ConfigMap.Name, pushed)
			}
		}
	case source.CSI != nil:
		local(source.CSI.NodePublishSecretRef)
	case source.ISCSI != nil:
		local(source.ISCSI.SecretRef)
	case source.RBD != nil:
		local(source.RBD.SecretRef)
	case source.CephFS != nil:
		local(source.CephFS.SecretRef)
	case source.FlexVolume != nil:
		local(source.FlexVolume.SecretRef)
	case source.ScaleIO != nil:
		local(source.ScaleIO.SecretRef)
	case source.StorageOS != nil:
		local(source.StorageOS.SecretRef)
	case source.Cinder != nil:
		local(source.Cinder.SecretRef)
	case source.AzureFile != nil:
		add(kindSecret, source.AzureFile.SecretName, onDemand)
	}
}
