package volume

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// A Place identifies one volume of one pod on this node and determines its directories, which are
// those of the kubelet.
type Place struct {
	// RootDir is the agent's directory, such as /var/lib/kubelet.
	RootDir string `json:"-"`

	PodUID types.UID `json:"podUID"`

	// Plugin is the name of the plugin, such as "kubernetes.io/empty-dir".
	Plugin string `json:"plugin"`

	// Name is the name of the directory; see [Spec.DirName].
	Name string `json:"name"`

	// Block means that Dir is a symbolic link to a device.
	Block bool `json:"block,omitempty"`
}

// PodDir returns pods/<uid>, the directory of the pod.
func (p Place) PodDir() string { return filepath.Join(p.RootDir, "pods", string(p.PodUID)) }

// Dir returns the mount point, pods/<uid>/volumes/<plugin>/<name>. For a block volume it returns the
// link to its device, pods/<uid>/volumeDevices/<plugin>/<name>.
func (p Place) Dir() string {
	kind := "volumes"
	if p.Block {
		kind = "volumeDevices"
	}
	return filepath.Join(p.PodDir(), kind, escape(p.Plugin), p.Name)
}

// PluginDir returns the directory for a plugin's own files about the volume,
// pods/<uid>/plugins/<plugin>/<name>. It is removed with the pod.
func (p Place) PluginDir() string {
	return filepath.Join(p.PodDir(), "plugins", escape(p.Plugin), p.Name)
}

// NodeDir returns the directory for a plugin's files that outlive pods: plugins/<plugin>.
func (p Place) NodeDir() string {
	return filepath.Join(p.RootDir, "plugins", filepath.FromSlash(p.Plugin))
}

// subPathsDir returns the directory of the bind mounts of sub-paths,
// pods/<uid>/volume-subpaths/<volume>; below it are <container>/<index>.
func (p Place) subPathsDir() string { return filepath.Join(p.PodDir(), "volume-subpaths", p.Name) }

func (p Place) String() string {
	return fmt.Sprintf("%s/%s of pod %s", p.Plugin, p.Name, p.PodUID)
}

// check returns an error if a component would leave the pod's directory.
func (p Place) check() error {
	for what, name := range map[string]string{"pod UID": string(p.PodUID), "volume": p.Name, "plugin": escape(p.Plugin)} {
		if err := checkName(name); err != nil {
			return fmt.Errorf("volume: %s %q: %w", what, name, err)
		}
	}
	return nil
}

// checkName returns an error unless name is a valid name of one directory entry.
func checkName(name string) error {
	switch {
	case name == "":
		return errors.New("is empty")
	case name == "." || name == "..":
		return errors.New("is not a directory name")
	case strings.ContainsAny(name, "/\x00") || strings.ContainsRune(name, filepath.Separator):
		return errors.New("contains a character that is invalid in a directory name")
	case len(name) > 255:
		return fmt.Errorf("has %d bytes; at most 255 are allowed", len(name))
	}
	return nil
}

// escape returns the directory name of a plugin: "kubernetes.io~empty-dir".
func escape(plugin string) string { return strings.ReplaceAll(plugin, "/", "~") }

// unescape reverts escape.
func unescape(dir string) string { return strings.ReplaceAll(dir, "~", "/") }

// uniqueName returns the name of the volume on this node: that of the shared volume if shared is not
// empty, else one that is unique to the pod.
func uniqueName(p Place, shared, specName string) string {
	if shared != "" {
		return p.Plugin + "/" + shared
	}
	return fmt.Sprintf("%s/%s-%s", p.Plugin, p.PodUID, specName)
}
