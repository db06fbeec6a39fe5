package lab

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"os"
	"slices"
	"time"
)

// kubeconfig returns a kubeconfig file, in JSON, for the API server at url. The client
// authenticates with a token if it is not empty, otherwise with a certificate.
func kubeconfig(url string, ca []byte, who pair, token string) ([]byte, error) {
	user := object{"client-certificate-data": who.cert, "client-key-data": who.key}
	if token != "" {
		user = object{"token": token}
	}
	return json.MarshalIndent(object{
		"apiVersion": "v1", "kind": "Config", "current-context": "lab",
		"clusters": []object{{"name": "lab", "cluster": object{"server": url, "certificate-authority-data": ca}}},
		"users":    []object{{"name": "lab", "user": user}},
		"contexts": []object{{"name": "lab", "context": object{"cluster": "lab", "user": "lab"}}},
	}, "", "  ")
}

// write writes the kubeconfig file of a user, and returns its path.
func (c *ControlPlane) write(name, user string, groups ...string) (string, error) {
	who, err := c.ca.client(user, groups...)
	if err != nil {
		return "", err
	}
	return c.writeConfig(name, who, "")
}

func (c *ControlPlane) writeConfig(name string, who pair, token string) (string, error) {
	path := c.file(name + ".kubeconfig")
	return path, c.writeFile(path, c.URL, who, token)
}

func (c *ControlPlane) writeFile(path, url string, who pair, token string) error {
	data, err := kubeconfig(url, c.ca.pem, who, token)
	if err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o600)
}

// WriteGuest writes the kubeconfig files of an administrator and of a node that has joined, for programs in the
// emulated machine of ControlPlaneConfig.Guest.
func (c *ControlPlane) WriteGuest(admin, node, name string) {
	c.t.Helper()
	for path, user := range map[string][]string{admin: {"lab-admin", "system:masters"}, node: {"system:node:" + name, "system:nodes"}} {
		who, err := c.ca.client(user[0], user[1:]...)
		c.must("make a certificate", err)
		c.must("write a kubeconfig", c.writeFile(path, c.guestURL, who, ""))
	}
}

// NodeKubeconfig writes the kubeconfig file of a node that has joined, and returns its
// path.
func (c *ControlPlane) NodeKubeconfig(node string) string {
	c.t.Helper()
	path, err := c.write("node-"+node, "system:node:"+node, "system:nodes")
	c.must("make a node's kubeconfig", err)
	return path
}

// NodeCertificate returns a certificate of a node that joined an hour ago, and its key, as
// PEM. validity is the remaining time until it expires.
func (c *ControlPlane) NodeCertificate(node string, validity time.Duration) []byte {
	c.t.Helper()
	template := certificate(pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}})
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	template.NotAfter = time.Now().Add(validity)
	made, err := c.ca.sign(template)
	c.must("make a node's certificate", err)
	return slices.Concat(made.cert, made.key)
}

// UserKubeconfig writes the kubeconfig file of a user in groups, and returns its path. The
// test must grant the permissions.
func (c *ControlPlane) UserKubeconfig(user string, groups ...string) string {
	c.t.Helper()
	path, err := c.write("user-"+user, user, groups...)
	c.must("make a user's kubeconfig", err)
	return path
}

// BootstrapKubeconfig writes the kubeconfig file of a machine that only has
// BootstrapToken, and returns its path.
func (c *ControlPlane) BootstrapKubeconfig() string {
	c.t.Helper()
	path, err := c.writeConfig("bootstrap", pair{}, BootstrapToken)
	c.must("make a kubeconfig", err)
	return path
}
