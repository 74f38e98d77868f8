# Requests that the official clients were seen to send.

control reset ''
while IFS=$'\t' read -r result problem; do
	case $result in
		'ok '*) pass "recorded: ${result#ok }" ;;
		*) fail "recorded: ${result#not ok }" "$problem" ;;
	esac
done < <(perl "$here/e2b_recorded.pl" "$here/e2b_recorded.json" "$base" 2>&1)
