package payload

import (
	"bytes"
	"encoding/pem"
	"errors"
	"slices"
	"strings"
)

// TrustAnchors returns the certificates of all bundles as one in PEM, each once,
// without whatever else stands between them. Their order depends on the
// certificates alone, so that nobody takes one for the more important (vol-57).
func TrustAnchors(bundles []string) ([]byte, error) {
	var certificates [][]byte
	for _, bundle := range bundles {
		rest := []byte(bundle)
		for {
			var block *pem.Block
			if block, rest = pem.Decode(rest); block == nil {
				break
			}
			if block.Type != "CERTIFICATE" {
				return nil, errors.New("trust bundle has a block of type " + block.Type + " in it, which is no certificate")
			}
			certificates = append(certificates, block.Bytes)
		}
		if strings.Contains(string(rest), "-----BEGIN") {
			return nil, errors.New("trust bundle has a block in it that is not PEM")
		}
	}
	slices.SortFunc(certificates, bytes.Compare)
	var out bytes.Buffer
	for _, c := range slices.CompactFunc(certificates, bytes.Equal) {
		if err := pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: c}); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}
