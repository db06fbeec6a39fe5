package csimigration

import (
	"fmt"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	translation "k8s.io/csi-translation-lib"
	"k8s.io/csi-translation-lib/plugins"

	"github.com/kubeparts/kubeparts/volume"
)

// Plugins returns the names of the replaced plugins, sorted, as in the annotation of a CSINode.
func Plugins() []string {
	return []string{
		plugins.AWSEBSInTreePluginName,
		plugins.AzureDiskInTreePluginName,
		plugins.AzureFileInTreePluginName,
		plugins.CinderInTreePluginName,
		plugins.GCEPDInTreePluginName,
		plugins.PortworxVolumePluginName,
		plugins.VSphereInTreePluginName,
	}
}

// Translate returns the spec of the CSI volume that replaces a volume of a pod in the namespace, and
// spec itself if it is of another kind. spec is not modified. It returns an error if the volume is
// invalid, such as an AWS volume whose ID has no zone. It implements the Translate of
// volume.PersistentVolumeConfig.
func Translate(spec *volume.Spec, namespace string) (*volume.Spec, error) {
	t := translation.New()
	if name, _ := t.GetInTreePluginNameFromSpec(spec.PV, spec.Volume); name == "" {
		return spec, nil
	}
	csi := *spec
	var err error
	if spec.PV != nil {
		csi.PV, err = t.TranslateInTreePVToCSI(logr.Logger{}, spec.PV)
	} else {
		csi.PV, err = translateInline(spec.Volume, namespace)
	}
	if err != nil {
		return nil, fmt.Errorf("failed to translate in-tree pv to CSI: %w", err)
	}
	csi.Migrated = true
	return &csi, nil
}

// translateInline translates a volume that is not persistent. It sets the storage policy of a vSphere
// volume, for which the library dereferences a nil pointer.
func translateInline(v *v1.Volume, namespace string) (*v1.PersistentVolume, error) {
	t := translation.New()
	if v.VsphereVolume == nil || v.VsphereVolume.StoragePolicyName == "" {
		return t.TranslateInTreeInlineVolumeToCSI(logr.Logger{}, v, namespace)
	}
	policy := v.VsphereVolume.StoragePolicyName
	v = v.DeepCopy()
	v.VsphereVolume.StoragePolicyName = ""
	pv, err := t.TranslateInTreeInlineVolumeToCSI(logr.Logger{}, v, namespace)
	if err != nil {
		return nil, err
	}
	pv.Spec.CSI.VolumeAttributes["storagepolicyname"] = policy
	return pv, nil
}
