package manifest

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// mustNotReference begins the details of errors about references.
const mustNotReference = "static pods may not reference "

// validateStatic returns an error for each reference of a static pod to an object of an
// API server (src-21), and for the annotation of a mirror pod.
func validateStatic(pod *v1.Pod) (errs field.ErrorList) {
	refuse := func(set bool, path *field.Path, what string) {
		if set {
			errs = append(errs, field.Forbidden(path, mustNotReference+what))
		}
	}
	if _, ok := pod.Annotations[v1.MirrorPodAnnotationKey]; ok {
		errs = append(errs, field.Forbidden(field.NewPath("metadata", "annotations").Key(v1.MirrorPodAnnotationKey), "marks the API server's copy of a static pod"))
	}
	spec, path := &pod.Spec, field.NewPath("spec")
	refuse(spec.ServiceAccountName != "", path.Child("serviceAccountName"), "serviceaccounts")
	refuse(spec.ServiceAccountName == "" && spec.DeprecatedServiceAccount != "", path.Child("serviceAccount"), "serviceaccounts")
	refuse(len(spec.ImagePullSecrets) > 0, path.Child("imagePullSecrets"), "secrets")
	refuse(len(spec.ResourceClaims) > 0, path.Child("resourceClaims"), "resourceclaims")

	env := func(containers []v1.Container, path *field.Path) {
		for i := range containers {
			at := path.Index(i)
			for j, e := range containers[i].Env {
				if from := e.ValueFrom; from != nil {
					at := at.Child("env").Index(j).Child("valueFrom")
					refuse(from.SecretKeyRef != nil, at.Child("secretKeyRef"), "secrets")
					refuse(from.ConfigMapKeyRef != nil, at.Child("configMapKeyRef"), "configmaps")
				}
			}
			for j, from := range containers[i].EnvFrom {
				at := at.Child("envFrom").Index(j)
				refuse(from.SecretRef != nil, at.Child("secretRef"), "secrets")
				refuse(from.ConfigMapRef != nil, at.Child("configMapRef"), "configmaps")
			}
		}
	}
	env(spec.InitContainers, path.Child("initContainers"))
	env(spec.Containers, path.Child("containers"))

	for i := range spec.Volumes {
		errs = append(errs, validateStaticVolume(&spec.Volumes[i], path.Child("volumes").Index(i))...)
	}
	return errs
}

// validateStaticVolume refuses the volumes that name an API object. Those of
// kinds that can, but need not, are refused only if they do.
func validateStaticVolume(v *v1.Volume, path *field.Path) (errs field.ErrorList) {
	refuse := func(set bool, path *field.Path, what string) {
		if set {
			errs = append(errs, field.Forbidden(path, mustNotReference+what))
		}
	}
	refuse(v.Secret != nil, path.Child("secret"), "secrets")
	refuse(v.ConfigMap != nil, path.Child("configMap"), "configmaps")
	refuse(v.PersistentVolumeClaim != nil, path.Child("persistentVolumeClaim"), "persistentvolumeclaims")
	refuse(v.Ephemeral != nil, path.Child("ephemeral"), "persistentvolumeclaims")
	refuse(v.CSI != nil, path.Child("csi"), "csidrivers")
	refuse(v.AzureFile != nil, path.Child("azureFile"), "secrets")
	refuse(v.Glusterfs != nil, path.Child("glusterfs"), "endpoints")

	refuse(v.ISCSI != nil && v.ISCSI.SecretRef != nil, path.Child("iscsi", "secretRef"), "secrets")
	refuse(v.RBD != nil && v.RBD.SecretRef != nil, path.Child("rbd", "secretRef"), "secrets")
	refuse(v.CephFS != nil && v.CephFS.SecretRef != nil, path.Child("cephfs", "secretRef"), "secrets")
	refuse(v.Cinder != nil && v.Cinder.SecretRef != nil, path.Child("cinder", "secretRef"), "secrets")
	refuse(v.FlexVolume != nil && v.FlexVolume.SecretRef != nil, path.Child("flexVolume", "secretRef"), "secrets")
	refuse(v.ScaleIO != nil && v.ScaleIO.SecretRef != nil, path.Child("scaleIO", "secretRef"), "secrets")
	refuse(v.StorageOS != nil && v.StorageOS.SecretRef != nil, path.Child("storageos", "secretRef"), "secrets")

	if v.Projected == nil {
		return errs
	}
	for i, s := range v.Projected.Sources {
		at := path.Child("projected", "sources").Index(i)
		refuse(s.Secret != nil, at.Child("secret"), "secrets")
		refuse(s.ConfigMap != nil, at.Child("configMap"), "configmaps")
		refuse(s.ServiceAccountToken != nil, at.Child("serviceAccountToken"), "serviceaccounts")
		refuse(s.ClusterTrustBundle != nil, at.Child("clusterTrustBundle"), "clustertrustbundles")
		refuse(s.PodCertificate != nil, at.Child("podCertificate"), "podcertificates")
	}
	return errs
}
