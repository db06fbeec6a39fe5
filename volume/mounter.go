package volume

import mount "k8s.io/mount-utils"

// A Mounter mounts and unmounts: mount.New("") of k8s.io/mount-utils is the
// machine's, volumetest.Mounter one in memory. Its methods don't end with a
// context: a file system that hangs holds the goroutine that mounts it.
type Mounter = mount.Interface
