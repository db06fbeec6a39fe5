package payload

import (
	"bytes"
	"encoding/pem"
	"errors"
	"slices"
	"strings"
)

// TrustAnchors returns the certificates of all bundles as PEM, sorted by content and without duplicates
// and text between them. It returns an error if a bundle contains other PEM blocks.
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
				return nil, errors.New("trust bundle contains a block of type " + block.Type + ", which is not a certificate")
			}
			certificates = append(certificates, block.Bytes)
		}
		if strings.Contains(string(rest), "-----BEGIN") {
			return nil, errors.New("trust bundle contains an invalid PEM block")
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
