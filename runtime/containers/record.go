package containers

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// A record is what a restarted agent needs of an instance or a group, stored by the backend. It has no
// environment: values of Secrets would be readable in the backend's metadata.
type record struct {
	Node    string        `json:"node"`
	Sandbox sandboxRecord `json:"sandbox"`

	Container *containerRecord `json:"container,omitempty"` // nil in a group's record
}

type sandboxRecord struct {
	ID          string                         `json:"id"`
	Created     int64                          `json:"created"` // nanoseconds since 1970
	Metadata    *runtimeapi.PodSandboxMetadata `json:"metadata"`
	Labels      map[string]string              `json:"labels,omitempty"`
	Annotations map[string]string              `json:"annotations,omitempty"`
	HostNetwork bool                           `json:"hostNetwork,omitempty"`
	Handler     string                         `json:"handler,omitempty"`
}

type containerRecord struct {
	Created     int64                         `json:"created"`
	Metadata    *runtimeapi.ContainerMetadata `json:"metadata"`
	Image       *runtimeapi.ImageSpec         `json:"image"`
	Labels      map[string]string             `json:"labels,omitempty"`
	Annotations map[string]string             `json:"annotations,omitempty"`
	Mounts      []*runtimeapi.Mount           `json:"mounts,omitempty"`
	LogPath     string                        `json:"logPath,omitempty"`
	StopSignal  runtimeapi.Signal             `json:"stopSignal,omitempty"`
}

func (r *record) encode() (string, error) {
	data, err := json.Marshal(r)
	return string(data), err
}

// decode returns the record of an instance or group of this node, nil if it is another's.
func decode(text, node string) *record {
	var r record
	if json.Unmarshal([]byte(text), &r) != nil || r.Node != node || r.Sandbox.ID == "" || r.Sandbox.Metadata == nil {
		return nil
	}
	if r.Container != nil && r.Container.Metadata == nil {
		return nil
	}
	return &r
}

// keyOf returns a DNS label that is the same for the same parts, so that the instance of a call whose
// response was lost is found by the next call. The hash is 80 bits.
func keyOf(name string, parts ...any) string {
	sum := sha256.Sum256(fmt.Append(nil, parts...))
	name = strings.Trim(name[:min(len(name), 40)], "-.")
	return strings.ReplaceAll(name, ".", "-") + "-" + hex.EncodeToString(sum[:10])
}
