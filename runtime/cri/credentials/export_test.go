package credentials

// CheckResponse reads what a plugin of v1 wrote.
func CheckResponse(data []byte) error {
	_, err := parseResponse(data, pluginV1)
	return err
}
