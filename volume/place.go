package volume

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// A Place is where one volume of one pod lives on this machine. Its directories
// are the kubelet's (section 6.1).
type Place struct {
	// Root is the agent's directory: /var/lib/kubelet.
	RootDir string `json:"-"`

	PodUID types.UID `json:"podUID"`

	// Plugin is the plugin's name: "kubernetes.io/empty-dir".
	Plugin string `json:"plugin"`

	// Name of the directory: Spec.DirName.
	Name string `json:"name"`

	// Block: it is a link to a device, not a directory.
	Block bool `json:"block,omitempty"`
}

// PodDir holds all that the agent keeps of the pod.
func (p Place) PodDir() string { return filepath.Join(p.RootDir, "pods", string(p.PodUID)) }

// Dir is where the volume is mounted, pods/<uid>/volumes/<plugin>/<name>, or,
// of a block volume, where the link to its device is, in volumeDevices.
func (p Place) Dir() string {
	kind := "volumes"
	if p.Block {
		kind = "volumeDevices"
	}
	return filepath.Join(p.PodDir(), kind, Escape(p.Plugin), p.Name)
}

// PluginDir is for what a plugin notes of the volume, beside its files:
// pods/<uid>/plugins/<plugin>/<name>. It goes with the pod.
func (p Place) PluginDir() string {
	return filepath.Join(p.PodDir(), "plugins", Escape(p.Plugin), p.Name)
}

// NodeDir is for what a plugin keeps beyond a pod: plugins/<plugin>.
func (p Place) NodeDir() string {
	return filepath.Join(p.RootDir, "plugins", filepath.FromSlash(p.Plugin))
}

// subPathsDir holds the bind mounts of parts of the volume:
// pods/<uid>/volume-subpaths/<volume>/<container>/<index> (vol-70).
func (p Place) subPathsDir() string { return filepath.Join(p.PodDir(), "volume-subpaths", p.Name) }

func (p Place) String() string {
	return fmt.Sprintf("%s/%s of pod %s", p.Plugin, p.Name, p.PodUID)
}

// check refuses what would lead out of the pod's directory.
func (p Place) check() error {
	for what, name := range map[string]string{"pod UID": string(p.PodUID), "volume": p.Name, "plugin": Escape(p.Plugin)} {
		if err := checkName(name); err != nil {
			return fmt.Errorf("volume: %s %q: %w", what, name, err)
		}
	}
	return nil
}

// checkName reports whether name can be that of one directory entry.
func checkName(name string) error {
	switch {
	case name == "":
		return errors.New("is empty")
	case name == "." || name == "..":
		return errors.New("is no name of a directory")
	case strings.ContainsAny(name, "/\x00") || strings.ContainsRune(name, filepath.Separator):
		return errors.New("has a character that no directory's name can have")
	case len(name) > 255:
		return fmt.Errorf("has %d bytes; a directory's name has at most 255", len(name))
	}
	return nil
}

// Escape makes a directory's name of a plugin's: "kubernetes.io~empty-dir".
func Escape(plugin string) string { return strings.ReplaceAll(plugin, "/", "~") }

// Unescape undoes Escape.
func Unescape(dir string) string { return strings.ReplaceAll(dir, "~", "/") }

// UniqueName is what the volume is called on this node (vol-2): shared by all
// pods that use it if shared is not empty, else its pod's own.
func UniqueName(p Place, shared, specName string) string {
	if shared != "" {
		return p.Plugin + "/" + shared
	}
	return fmt.Sprintf("%s/%s-%s", p.Plugin, p.PodUID, specName)
}
