package lab

import "encoding/json"

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
