package dratest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	drav1 "k8s.io/kubelet/pkg/apis/dra/v1"
)

// cdiSpec is a CDI specification of version 0.6.0.
type cdiSpec struct {
	Version string      `json:"cdiVersion"`
	Kind    string      `json:"kind"`
	Devices []cdiDevice `json:"devices"`
}

type cdiDevice struct {
	Name  string          `json:"name"`
	Edits json.RawMessage `json:"containerEdits"`
}

func cdiFile(dir string, c *drav1.Claim) string {
	return filepath.Join(dir, "dratest-"+c.GetUid()+".json")
}

// writeCDI writes the specification of the CDI devices of a claim, which must be of one
// kind.
func writeCDI(dir, edits string, c *drav1.Claim, devices []*drav1.Device) error {
	if edits == "" {
		edits = fmt.Sprintf(`{"env":["CLAIM=%s"]}`, c.GetName())
	}
	spec := cdiSpec{Version: "0.6.0"}
	for _, d := range devices {
		for _, id := range d.GetCdiDeviceIds() {
			kind, name, _ := strings.Cut(id, "=")
			if spec.Kind != "" && spec.Kind != kind {
				return fmt.Errorf("dratest: CDI devices of the kinds %q and %q in one claim", spec.Kind, kind)
			}
			spec.Kind = kind
			spec.Devices = append(spec.Devices, cdiDevice{name, json.RawMessage(edits)})
		}
	}
	if len(spec.Devices) == 0 {
		return nil
	}
	text, err := json.Marshal(spec)
	if err != nil {
		return fmt.Errorf("dratest: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("dratest: %w", err)
	}
	path := cdiFile(dir, c)
	if err := os.WriteFile(path+".tmp", text, 0o644); err != nil {
		return fmt.Errorf("dratest: %w", err)
	}
	return os.Rename(path+".tmp", path)
}
