package manifest

import v1 "k8s.io/api/core/v1"

func defaultVolume(v *v1.Volume) {
	if v.VolumeSource == (v1.VolumeSource{}) {
		v.EmptyDir = new(v1.EmptyDirVolumeSource)
	}
	if s := v.HostPath; s != nil {
		setPointer(&s.Type, v1.HostPathUnset)
	}
	if s := v.Secret; s != nil {
		setPointer(&s.DefaultMode, v1.SecretVolumeSourceDefaultMode)
	}
	if s := v.ConfigMap; s != nil {
		setPointer(&s.DefaultMode, v1.ConfigMapVolumeSourceDefaultMode)
	}
	if s := v.DownwardAPI; s != nil {
		setPointer(&s.DefaultMode, v1.DownwardAPIVolumeSourceDefaultMode)
		defaultItems(s.Items)
	}
	if s := v.Projected; s != nil {
		setPointer(&s.DefaultMode, v1.ProjectedVolumeSourceDefaultMode)
		for i := range s.Sources {
			if d := s.Sources[i].DownwardAPI; d != nil {
				defaultItems(d.Items)
			}
			if t := s.Sources[i].ServiceAccountToken; t != nil {
				setPointer(&t.ExpirationSeconds, 60*60)
			}
		}
	}
	if s := v.Image; s != nil {
		setDefault(&s.PullPolicy, pullPolicy(s.Reference))
	}
	if s := v.Ephemeral; s != nil && s.VolumeClaimTemplate != nil {
		setPointer(&s.VolumeClaimTemplate.Spec.VolumeMode, v1.PersistentVolumeFilesystem)
	}
	defaultRemote(v)
}

// defaultRemote sets the defaults of network disks and file servers.
func defaultRemote(v *v1.Volume) {
	if s := v.ISCSI; s != nil {
		setDefault(&s.ISCSIInterface, "default")
	}
	if s := v.RBD; s != nil {
		setDefault(&s.RBDPool, "rbd")
		setDefault(&s.RadosUser, "admin")
		setDefault(&s.Keyring, "/etc/ceph/keyring")
	}
	if s := v.AzureDisk; s != nil {
		setPointer(&s.CachingMode, v1.AzureDataDiskCachingReadWrite)
		setPointer(&s.Kind, v1.AzureSharedBlobDisk)
		setPointer(&s.FSType, "ext4")
		setPointer(&s.ReadOnly, false)
	}
	if s := v.ScaleIO; s != nil {
		setDefault(&s.StorageMode, "ThinProvisioned")
		setDefault(&s.FSType, "xfs")
	}
}

func defaultItems(items []v1.DownwardAPIVolumeFile) {
	for i := range items {
		if ref := items[i].FieldRef; ref != nil {
			setDefault(&ref.APIVersion, "v1")
		}
	}
}
