package apiserver_test

import (
	"fmt"

	"github.com/stretchr/testify/assert"
)

func testNodePorts(w *world, _ *hooks) {
	path := "/api/v1/namespaces/node-ports/services"
	ports := func(o map[string]any) (list []float64) {
		for _, p := range o["spec"].(map[string]any)["ports"].([]any) {
			port, _ := p.(map[string]any)["nodePort"].(float64)
			list = append(list, port)
		}
		return list
	}
	create := func(name, spec string) map[string]any {
		return w.expect(201, "", "POST", path, "{metadata: {name: "+name+"}, spec: "+spec+"}")
	}
	inRange := func(port float64) { assert.True(w, 30000 <= port && port <= 32767, "%v", port) }

	assert.Equal(w, []float64{0}, ports(create("internal", "{ports: [{port: 80}]}")))
	a := ports(create("a", "{type: NodePort, ports: [{name: http, port: 80}, {name: https, port: 443}]}"))
	inRange(a[0])
	inRange(a[1])
	assert.NotEqual(w, a[0], a[1])
	dns := ports(create("dns", "{type: NodePort, ports: [{name: tcp, port: 53}, {name: udp, protocol: UDP, port: 53}]}"))
	assert.Equal(w, dns[0], dns[1], "protocols of a port share its node port")
	assert.NotContains(w, a, dns[0])

	// A port that is named.
	assert.Equal(w, []float64{30007, 30007}, ports(create("named", "{type: NodePort, ports: [{name: udp, protocol: UDP, port: 53}, {name: tcp, port: 53, nodePort: 30007}]}")))
	w.expect(422, `Service "b" is invalid: spec.ports[0].nodePort: Invalid value: 30007: provided port is already allocated`, "POST", path, "{metadata: {name: b}, spec: {type: NodePort, ports: [{port: 80, nodePort: 30007}]}}")
	w.expect(422, `Service "b" is invalid: spec.ports[0].nodePort: Invalid value: 80: provided port is not in the valid range. The range of valid ports is 30000-32767`, "POST", path, "{metadata: {name: b}, spec: {type: NodePort, ports: [{port: 80, nodePort: 80}]}}")

	// Updates keep the ports that the Service has, also with other ones before them.
	again := ports(w.expect(200, "", "PATCH", path+"/a", "{spec: {ports: [{name: admin, port: 8080}, {name: http, port: 80}, {name: https, port: 443}]}}"))
	inRange(again[0])
	assert.Equal(w, a, again[1:])
	assert.Equal(w, again, ports(w.expect(200, "", "PATCH", path+"/a", "{spec: {type: LoadBalancer}}")))
	w.expect(422, `Service "a" is invalid: spec.ports[0].nodePort: Invalid value: 30007: provided port is already allocated`, "PATCH", path+"/a", "{spec: {ports: [{port: 80, nodePort: 30007}]}}")
	assert.Equal(w, []float64{0, 0, 0}, ports(w.expect(200, "", "PATCH", path+"/a", "{spec: {type: ClusterIP}}")))
	assert.Equal(w, a[:1], ports(create("freed", fmt.Sprintf("{type: NodePort, ports: [{port: 80, nodePort: %v}]}", a[0]))))

	// Load balancers.
	assert.Equal(w, []float64{0}, ports(create("without", "{type: LoadBalancer, allocateLoadBalancerNodePorts: false, ports: [{port: 80}]}")))
	local := create("local", "{type: LoadBalancer, externalTrafficPolicy: Local, ports: [{port: 80}]}")
	check, _ := local["spec"].(map[string]any)["healthCheckNodePort"].(float64)
	inRange(check)
	assert.NotContains(w, ports(local), check)
	local = w.expect(200, "", "PATCH", path+"/local", "{metadata: {labels: {a: b}}}")
	assert.Equal(w, check, local["spec"].(map[string]any)["healthCheckNodePort"])
	w.expect(422, fmt.Sprintf(`Service "b" is invalid: spec.ports[0].nodePort: Invalid value: %v: provided port is already allocated`, check), "POST", path, fmt.Sprintf("{metadata: {name: b}, spec: {type: NodePort, ports: [{port: 80, nodePort: %v}]}}", check))
	local = w.expect(200, "", "PATCH", path+"/local", "{spec: {externalTrafficPolicy: Cluster}}")
	assert.NotContains(w, local["spec"], "healthCheckNodePort")
}
